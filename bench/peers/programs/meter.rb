# What both scripts share: the load, and the report of what the jobs took.
module Meter
  JOBS = Integer(ENV.fetch("BENCH_JOBS"))
  URL = ENV.fetch("BENCH_URL")
  WAIT = Float(ENV.fetch("BENCH_WAIT"))
  CONCURRENCY = Integer(ENV.fetch("BENCH_CONCURRENCY"))
  REPORT = ENV.fetch("BENCH_REPORT")
  AT_ONCE = 1_000

  @lock = Mutex.new
  @handled = 0

  def self.now = [Process::CLOCK_MONOTONIC, Process::CLOCK_PROCESS_CPUTIME_ID].map { |clock| Process.clock_gettime(clock) }

  def self.report(began)
    seconds, processor = now.zip(began).map { |after, before| after - before }
    File.write("#{REPORT}.part", %({"seconds": #{seconds}, "processor": #{processor}}))
    File.rename("#{REPORT}.part", REPORT)
  end

  # In the handler: from the beginning of its first call to the end of its last.
  def self.work(jobs = 1)
    @lock.synchronize { @began ||= now } unless @began
    sleep(WAIT) if WAIT.positive?
    @lock.synchronize { report(@began) if (@handled += jobs) == JOBS }
  end

  def self.push
    began = now
    JOBS.times.each_slice(AT_ONCE) { |numbers| yield numbers }
    report(began)
  end
end
