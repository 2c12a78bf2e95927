# What both scripts share: counts blank jobs and prints the seconds that they took, as the last line.
module Meter
  JOBS = Integer(ENV.fetch("JOBS"))
  URL = ENV.fetch("URL")
  THREADS = Integer(ENV.fetch("THREADS"))
  AT_ONCE = 1_000

  @lock = Mutex.new
  @handled = 0

  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def self.tell(seconds)
    $stdout.puts("seconds #{seconds}")
    $stdout.flush
  end

  # In the handler: from its first call to its last.
  def self.count(jobs = 1)
    @lock.synchronize do
      @began_at ||= now
      @handled += jobs
      tell(now - @began_at) if @handled == JOBS
    end
  end

  def self.push
    began_at = now
    JOBS.times.each_slice(AT_ONCE) { |numbers| yield numbers }
    tell(now - began_at)
  end
end
