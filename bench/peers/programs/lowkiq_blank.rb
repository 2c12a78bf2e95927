# Run by ruby it pushes; required by lowkiq it works.
require "lowkiq"
require_relative "meter"

Redis.silence_deprecations = true if Redis.respond_to?(:silence_deprecations=)
Lowkiq.redis = -> { Redis.new(url: Meter::URL, driver: :hiredis) }
Lowkiq.threads_per_node = Meter::CONCURRENCY
# The faster of its two schedulers.
Lowkiq.build_scheduler = -> { Lowkiq.build_seq_scheduler }

module Blank
  extend Lowkiq::Worker

  self.shards_count = Meter::CONCURRENCY
  self.batch_size = Integer(ENV.fetch("BENCH_BATCH_SIZE"))

  def self.perform(batch) = Meter.work(batch.size)
end

Lowkiq.workers = [Blank]

if $PROGRAM_NAME == __FILE__
  Meter.push { |numbers| Blank.perform_async(numbers.map { |number| { id: number, payload: number.to_s } }) }
end
