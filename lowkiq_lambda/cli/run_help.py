"""What the help of `lowkiq run` says beside the options."""

from typing import Final

HELP: Final = """
Run the daemon: a fixed number of threads perform the jobs of an app, until the process is told to stop.

MODULE:APP names the app, or else LOWKIQ_APP, or [tool.lowkiq] of the project's pyproject.toml; without an app nothing \
is run. Without a Redis URL the embedded server is used: a Valkey on this machine that is started on demand, shared by \
all programs of the project, and keeps its data in a folder.
"""
EPILOGUE: Final = """
SETTINGS come from the app's Config, or from the environment, where each is
called LOWKIQ_ and its name. The options above win over both.
  LOWKIQ_REDIS_URL         the server; REDIS_URL serves too. For development
                           embedded: or embedded:FOLDER, refused where the
                           process is a deployment
  LOWKIQ_THREADS_PER_NODE  the number of drain threads (5)
  LOWKIQ_POLL_INTERVAL     seconds between two polls for work, for pushes
                           without a notification (1)
  LOWKIQ_SHUTDOWN_TIMEOUT  seconds that running handlers have to end (25)
  LOWKIQ_SCHEDULES         whether this process fires schedule entries, true or
                           false; unset: if the app's code declares any
  LOWKIQ_NUMBER_OF_NODES   how many daemons divide the shards among them (1)
  LOWKIQ_NODE_NUMBER       the number of this one, from 0
  LOWKIQ_DATA_DIR          as --data-dir, for the embedded server; .lowkiq at
                           the root of the project by default
  LOWKIQ_DASHBOARD_PASSWORD
                           the operators' password; without one the dashboard
                           serves this machine alone, with a password that
                           is made up for the run
  LOWKIQ_DASHBOARD_TRUSTED_PROXIES
                           addresses of the proxies in front of the dashboard,
                           whose headers name the caller

PROCESSES
  Python code runs on one core at a time in each process. --processes 4 makes
  this process a parent of four that drain, each with the threads of
  --threads. It serves the dashboard and replaces a child that dies: the first
  time at once, then after 1, 2, 4 ... 30 seconds. A child that has more than
  --max-memory is replaced, too: another one runs before it is told to stop.
  Signals go to the parent, which passes them on; the exit code is the worst.

SIGNALS
  TERM, INT  Stop: start nothing new, and let running handlers end. Jobs that
             have not ended in time are given back, to run again elsewhere,
             and the process exits. A second signal: at once.
  TSTP       Quiet: start nothing new, finish what runs, live on until TERM.
  TTIN       Log what each thread is doing, and write it to lowkiq_ttin.txt.

EXIT CODES
  0  Every job that was started came to its end.
  1  A job was given back unfinished, or Redis refused something.
  2  The command line, the settings or the app cannot work.
  3  The server cannot be reached, or the embedded server does not start.

EXAMPLES
  The app called app in the module shop.jobs, with 20 threads:
    lowkiq run shop.jobs:app --threads 20
  A look into the embedded server:
    redis-cli -u "$(lowkiq redis)"
  On four cores, with a new process in place of one that has over 1,000 MB:
    lowkiq run shop.jobs:app --processes 4 --max-memory 1000
  The first of two daemons, with logs for machines:
    LOWKIQ_NUMBER_OF_NODES=2 LOWKIQ_NODE_NUMBER=0 \\
      lowkiq run shop.jobs:app --log-format json
"""
