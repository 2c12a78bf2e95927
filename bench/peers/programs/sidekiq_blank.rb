# Run by ruby it pushes; required by sidekiq it works.
require "sidekiq"
require_relative "meter"

Redis.silence_deprecations = true if Redis.respond_to?(:silence_deprecations=)
connection = { url: Meter::URL, driver: :hiredis }
Sidekiq.configure_client { |config| config.redis = connection }
Sidekiq.configure_server do |config|
  config.redis = connection
  config.logger.level = Logger::FATAL
end

class Blank
  include Sidekiq::Worker

  def perform(_payload) = Meter.work
end

if $PROGRAM_NAME == __FILE__
  Meter.push { |numbers| Sidekiq::Client.push_bulk("class" => Blank, "args" => numbers.map { |number| [number.to_s] }) }
end
