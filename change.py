found = []
