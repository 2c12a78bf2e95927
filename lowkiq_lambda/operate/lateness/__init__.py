"""Why a queue is late: samples of each minute, the nine causes in their order, and the hours of a queue."""
