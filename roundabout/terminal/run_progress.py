# SPDX-License-Identifier: Apache-2.0
"""Live display of a run: a few redrawn lines on a terminal, or plain lines in a log."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, TypeVar, cast

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from roundabout.core.milliseconds import format_ms
from roundabout.runner.observer import CrossTrafficUse, LinkUse
from roundabout.runner.progress_events import EndedAttempt, Follower, JobProgress, Progress
from roundabout.runner.progress_file import ProgressWriter
from roundabout.terminal.lines import format_duration
from roundabout.terminal.output import FULL, discard_output

T = TypeVar("T")

REFRESH_S = 0.25  # least seconds between redraws, because drawing takes CPU time from the measured jobs
BAR = 20  # width of the progress bar, columns

Forms = tuple[str, ...]  # variants of one line's text, the longest first


class TerminalView:
    """A View that redraws a few lines below the printed lines, at most four times a second."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console, self._live = console, live
        self._path, self._said, self._attempts = "", ("", ""), 0
        self._drawn = 0.0

    def show(self, progress: Progress) -> None:
        """Draw the progress, immediately if a step or a trial begins or ends, else at most every REFRESH_S."""
        said = (progress.what, progress.phase)
        if progress.path != self._path:
            self._console.print(f"run {progress.path}")
        if progress.ended and progress.attempts != self._attempts:
            for line in reason_lines(progress.ended):
                self._console.print(Text(line, style="yellow"))
        if said != self._said or time.monotonic() - self._drawn >= REFRESH_S:
            self._drawn = time.monotonic()
            self._live.update(ProgressScreen(progress), refresh=True)
        self._path, self._said, self._attempts = progress.path, said, progress.attempts

    def notice(self, text: str) -> None:
        """Print a notice that users need to read the run's results."""
        self._console.print(Text(text, style="yellow"), soft_wrap=True)

    def leave(self, pending: Sequence[str]) -> None:
        """Note that the run ends at once."""
        self._live.stop()
        self._console.print(describe_leftovers(pending), soft_wrap=True, highlight=False)


class PlainView:
    """A View for logs, which prints a line when a step or trial begins or ends."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._path, self._what, self._attempts = "", "", 0

    def show(self, progress: Progress) -> None:
        """Print the steps and trials that began or ended since the last call."""
        if progress.path != self._path:
            self._say(f"run {progress.path}")
        elif progress.ended and progress.attempts != self._attempts:
            self._report_end(progress.ended)
        if progress.what != self._what:
            left_s = format_duration(progress.time_left_s)
            self._say(f"trial {progress.what}; about {left_s} left" if progress.trial else progress.what)
        self._path, self._what, self._attempts = progress.path, progress.what, progress.attempts

    def notice(self, text: str) -> None:
        """Print a notice that users need to read the run's results."""
        self._say(f"  {text}")

    def leave(self, pending: Sequence[str]) -> None:
        """Note that the run ends at once."""
        self._say(describe_leftovers(pending))

    def _report_end(self, ended: EndedAttempt) -> None:
        for name, job in ended.jobs.items():
            if job.done:  # else they went on elsewhere
                self._say(f"  {name}: {job.done} iterations, mean {format_ms(job.mean_ms)} ms")
        for reason in ended.reasons:
            self._say(f"  {attempt_verdict(ended)}: {reason}")

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, highlight=False)


@dataclass(frozen=True)
class ProgressScreen:
    """A rich renderable of a run's progress, cut to the height and width of the terminal."""

    progress: Progress
    titled: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [line for block in self._blocks() for line in fit_lines(block, options.max_width)]
        room = max(console.height - 1, 1)
        if len(lines) > room:
            lines[room - 1 :] = [f"... and {len(lines) - room + 1} lines more"]
        for line in lines:
            text = Text(" ".join(line.splitlines()), no_wrap=True)
            text.truncate(options.max_width, overflow="ellipsis")
            yield text

    def _blocks(self) -> Iterator[list[Forms]]:
        """Yield lines that belong together, and share one form."""
        now = self.progress
        if self.titled:
            yield [(now.path, f"{now.experiment} {now.run}", now.run)]
        yield list(_head(now))
        yield [_job(name, job) for name, job in _align(now.jobs)]
        yield [_link(name, use) for name, use in _align(now.links)]
        yield [_cross_traffic(name, use) for name, use in _align(now.cross_traffic)]
        if now.ended:
            yield [_ended(now.ended)]


def fit_lines(block: Sequence[Forms], width: int) -> list[str]:
    """Return each line's longest variant at which all lines of the block fit into `width` columns.

    If they never fit, return the shortest variants.
    """
    ways = list(zip(*block, strict=True))
    return list(next((way for way in ways if all(cell_len(line) <= width for line in way)), ways[-1] if ways else ()))


def _head(now: Progress) -> Iterator[Forms]:
    if not now.trials:
        yield (now.what,)
        return
    full = BAR * now.done // now.trials
    bar = f"[{'#' * full}{'.' * (BAR - full)}]"
    phase = f", {now.phase}" if now.phase else ""
    left_s = f"  about {format_duration(now.time_left_s)} left" if now.done < now.trials else ""
    yield f"{bar}  {now.what}{phase}{left_s}", f"{bar}  {now.what}{left_s}", f"{now.what}{left_s}", now.what


def _job(name: str, job: JobProgress) -> Forms:
    of = f"iteration {job.done:3d} of {job.iterations}"
    if not job.done:
        return f"  {name}  {of}  starting", f"{name} {job.done}/{job.iterations}"
    times = f"last {format_ms(job.last_ms):>6} ms   mean {format_ms(job.mean_ms):>6} ms"
    return f"  {name}  {of}  {times}", f"{name} {job.done}/{job.iterations} mean {format_ms(job.mean_ms)} ms"


def _link(name: str, use: LinkUse) -> Forms:
    rate = f"{use.gbps:5.1f} of {use.line_rate_gbps:g} Gbit/s"
    marks = "" if use.marks_per_s is None else f", {use.marks_per_s:.0f} ECN marks a second"
    queue = "" if use.backlog_bytes is None else f", queue to {use.backlog_bytes / 1e3:.0f} kB"
    said = f"{name} {use.gbps:.1f} Gbit/s"
    return f"  link {name}: {rate}{marks}{queue}", f"{said}{marks}", f"{said}{marks.replace(' a second', '/s')}", said


def _cross_traffic(name: str, use: CrossTrafficUse) -> Forms:
    sent = "?" if use.sent_gbps is None else f"{use.sent_gbps:.1f}"
    rate = f"{sent} of {use.asked_gbps:g} Gbit/s"
    return f"  cross traffic {name}: {rate}", f"{name} {rate}"


def _ended(ended: EndedAttempt) -> Forms:
    if ended.reasons:
        return ("; ".join(reason_lines(ended)),)
    means = ", ".join(f"{name} {format_ms(job.mean_ms)} ms" for name, job in ended.jobs.items() if job.done)
    if not means:  # they went on elsewhere
        return f"  before: {ended.label}", f"before: {ended.label}"
    return f"  before: {ended.label}: mean {means}", f"before: {means}"


def _align(named: Mapping[str, T]) -> Iterator[tuple[str, T]]:
    """Yield the pairs with names of one length."""
    longest = max(map(len, named), default=0)
    return ((name.ljust(longest), value) for name, value in named.items())


def attempt_verdict(ended: EndedAttempt) -> str:
    """Return the displayed verdict on an attempt at a trial that is not valid."""
    if ended.again:
        return "again"
    return "disturbed" if ended.disturbed else "invalid"


def reason_lines(ended: EndedAttempt) -> list[str]:
    """Return the reasons why an attempt is not valid, one line each."""
    return [f"{attempt_verdict(ended)}: {ended.label}: {reason}" for reason in ended.reasons]


def describe_leftovers(pending: Sequence[str]) -> str:
    """Return a message about a run that was interrupted twice and left the changes `pending` in place."""
    return f"interrupted; not cleaned up: {', '.join(pending)}; run: roundabout clean" if pending else "interrupted"


class LenientStream:
    """An output stream whose errors do not end the run, such as a closed terminal or pipe.

    `refusal` stores the error of a full disk, which is reported at the end of the run.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.refusal: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text. Ignore the error if the reader has ended."""
        with self._mute_at_the_end():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the buffer. Ignore the error if the reader has ended."""
        with self._mute_at_the_end():
            self._stream.flush()

    @contextmanager
    def _mute_at_the_end(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            discard_output(self._stream)
            self.refusal = error if error.errno in FULL else self.refusal


def can_redraw(console: Console) -> bool:
    """Return True if this console can redraw lines."""
    return console.is_terminal and not console.is_dumb_terminal


@contextmanager
def show_progress(console: Console) -> Iterator[Follower]:
    """Yield an observer that shows a run's progress on this console and writes it to a file for other processes.

    Errors of the display never end the run. Raises OSError at the end if the output's disk was full.
    """
    stream = LenientStream(console.file)
    console.file = cast("IO[str]", stream)
    with ProgressWriter() as recorder:
        if not can_redraw(console):
            yield Follower(PlainView(console), recorder)
        else:
            with Live(console=console, auto_refresh=False, transient=True) as live:
                yield Follower(TerminalView(console, live), recorder)
    if stream.refusal and not console.stderr:  # a full stderr takes no message, and stdout has the result
        raise stream.refusal
