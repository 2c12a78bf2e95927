"""Why a queue is late: the nine causes by values, and each of them played on a server."""
