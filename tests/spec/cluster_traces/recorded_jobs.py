# SPDX-License-Identifier: Apache-2.0
"""Jobs in the forms of the Philly and Alibaba traces."""

# As the README of msr-fiddle/philly-traces shows and describes an entry, with other numbers.
JOB = {
    "status": "Pass",
    "vc": "a1",
    "jobid": "application_1_1",
    "attempts": [
        {
            "start_time": "2017-10-07 01:12:09",
            "end_time": "2017-10-07 01:13:09",
            "detail": [{"ip": "m4", "gpus": ["gpu0", "gpu1"]}, {"ip": "m5", "gpus": ["gpu0"]}],
        },
        {"start_time": "2017-10-07 01:14:00", "end_time": "2017-10-07 02:14:00", "detail": []},
    ],
    "submitted_time": "2017-10-07 01:11:39",
    "user": "u1",
}
RUNNING = {
    **JOB,
    "jobid": "application_1_2",
    "attempts": [
        {"start_time": "2017-10-07 01:12:09", "end_time": None, "detail": [{"ip": "m4", "gpus": ["gpu3"]}]},
        {"start_time": "None", "end_time": "", "detail": [{"ip": "m4", "gpus": ["gpu3"]}]},
    ],
}
NEVER = {**JOB, "jobid": "application_1_3", "attempts": []}
# Columns as readers of alibaba-lingjun-dataset-2023 name them; topo.csv's as published.
JOBS = """\
id,uid,job_name,kind,namespace,model,status,gmt_job_submitted,gmt_job_running,gmt_job_stopped,gmt_job_finished
1,u1,dlc1,PyTorchJob,n1,gpt-7b,Succeeded,2023/7/15 02:19,2023/7/15 02:20,,2023/7/15 03:20
2,u2,dlc2,PyTorchJob,n1,unknown,Stopped,2023/7/15 02:25,2023/7/15 02:26,2023/7/15 02:36,
3,u3,dlc3,TFJob,n1,unknown,Failed,2023-07-17 02:53:00,2023-07-05 15:18:00,,2023-07-17 02:54:00
4,u4,dlc4,TFJob,n1,unknown,Failed,2023/7/15 02:30,,,
"""
WORKERS = """\
id,job_name,worker_name,replica_type,host_ip,gmt_created,RES
1,dlc1,dlc1-master-0,master,9f3a,2023/7/15 02:19,"{""cpu"":""88"",""nvidia.com/gpu"":""8""}"
2,dlc1,dlc1-worker-0,worker,9f3b,2023/7/15 02:19,"{""nvidia.com/gpu"":8}"
3,dlc2,dlc2-master-0,master,9f3a,2023/7/15 02:19,"{""nvidia.com/gpu"":""4""}"
4,dlc3,dlc3-master-0,master,9f3a,2023/7/15 02:19,"{""nvidia.com/gpu"":""1""}"
5,dlc4,dlc4-master-0,master,9f3a,2023/7/15 02:19,"{""cpu"":""1""}"
6,dlc4,dlc4-master-1,master,,2023/7/15 02:19,
"""
TOPOLOGY = """\
ip,DSW,PSW,ASW
0c9d,G6,P10,S2
525c,G6,P12,S2
99be,G6,P10,S2
e303,G6,P10,S6
"""
