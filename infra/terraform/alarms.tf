# Alarms, and whom they tell; docs/runbooks of lowkiq_lambda has a page for each.

locals {
  alarms = {
    failure = {
      when        = true
      description = "Invocations failed, timed out, were refused for too long or lost. No job is lost. Run lowkiq doctor, then read why in the drain function's log and in the failure queue; see docs/runbooks/failures.md of lowkiq_lambda."
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      periods     = 5
      datapoints  = 1
      missing     = "notBreaching"
    }
    silence = {
      when        = var.schedule_state == "ENABLED"
      description = "No housekeeping runs, so that no other alarm knows how late jobs are. Run lowkiq doctor; then look whether the schedule \"minute\" is enabled. lowkiq drain does the work until then; see docs/runbooks/silence.md of lowkiq_lambda."
      namespace   = local.publishes ? var.metrics_namespace : "AWS/Lambda"
      metric      = local.publishes ? "oldest_due_age" : "Invocations"
      statistic   = "SampleCount"
      period      = 60
      comparison  = "LessThanThreshold"
      threshold   = 1
      periods     = 5
      missing     = "breaching"
      dimensions  = { (local.publishes ? "function" : "FunctionName") = aws_lambda_function.function["drain"].function_name }
    }
    oldest_due = {
      when        = local.publishes
      description = "A due job waits for too long. Run lowkiq stats for the queue with the largest LAG, then lowkiq why QUEUE, which says why it is late and what helps; see docs/runbooks/oldest-due-age.md of lowkiq_lambda."
      namespace   = var.metrics_namespace
      metric      = "oldest_due_age"
      statistic   = "Maximum"
      period      = 60
      comparison  = "GreaterThanThreshold"
      threshold   = var.oldest_due_age_alarm
      periods     = 5
      datapoints  = 3
      missing     = "ignore"
      dimensions  = { function = aws_lambda_function.function["drain"].function_name }
    }
    dead = {
      when        = local.publishes
      description = "Jobs failed for the last time and lie in the morgue, or were lost where it is full. Run lowkiq errors, correct the cause, then run lowkiq requeue QUEUE --all --dry-run, and again without --dry-run; see docs/runbooks/dead.md of lowkiq_lambda."
      namespace   = var.metrics_namespace
      metric      = "dead"
      statistic   = "Sum"
      period      = 300
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      periods     = 1
      missing     = "notBreaching"
      dimensions  = { function = aws_lambda_function.function["drain"].function_name }
    }
    blocked_ids = {
      when        = var.blocked_alarm
      description = "Ids are blocked, and an operator has to unblock them. Run lowkiq errors, correct the cause, then run lowkiq unblock QUEUE --all; see docs/runbooks/blocked.md of lowkiq_lambda."
      namespace   = var.metrics_namespace
      metric      = "blocked"
      statistic   = "Maximum"
      period      = 60
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      periods     = 1
      missing     = "notBreaching"
      dimensions  = { function = aws_lambda_function.function["drain"].function_name }
    }
    missed_schedule = {
      when        = var.schedule_alarm
      description = "Schedule entries have missed planned times. Run lowkiq doctor for the reason, then lowkiq schedules run QUEUE NAME for each that is still wanted; see docs/runbooks/missed-schedules.md of lowkiq_lambda."
      namespace   = var.metrics_namespace
      metric      = "schedules_missed"
      statistic   = "Sum"
      period      = 300
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      periods     = 1
      missing     = "notBreaching"
      dimensions  = { function = aws_lambda_function.function["drain"].function_name }
    }
    violation = {
      when        = var.verify_share != "0" && local.publishes
      description = "A promise of a queue was violated. Run lowkiq verify QUEUE, which names the rule and the id; lowkiq pause QUEUE stops the queue meanwhile; see docs/runbooks/violations.md of lowkiq_lambda."
      namespace   = var.metrics_namespace
      metric      = "verify_violations"
      statistic   = "Sum"
      period      = 300
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      periods     = 1
      missing     = "notBreaching"
      dimensions  = { function = aws_lambda_function.function["drain"].function_name }
    }
    ingest_error = {
      when        = local.ingests
      description = "The ingest function failed or timed out. Its records come again. Run lowkiq doctor, which tells whether Redis takes pushes, then read the function's log; see docs/runbooks/ingest-errors.md of lowkiq_lambda."
      namespace   = "AWS/Lambda"
      metric      = "Errors"
      statistic   = "Sum"
      period      = 300
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      periods     = 1
      missing     = "notBreaching"
      dimensions  = { FunctionName = try(aws_lambda_function.function["ingest"].function_name, "") }
    }
    ingest_throttle = {
      when        = local.ingests
      description = "The ingest function was refused, as the account runs too many at once. Nothing is lost. Run lowkiq stats, which tells whether jobs still arrive, then raise the account's limit of concurrent executions; see docs/runbooks/ingest-throttles.md of lowkiq_lambda."
      namespace   = "AWS/Lambda"
      metric      = "Throttles"
      statistic   = "Sum"
      period      = 300
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      periods     = 1
      missing     = "notBreaching"
      dimensions  = { FunctionName = try(aws_lambda_function.function["ingest"].function_name, "") }
    }
    failed_record = {
      when        = local.ingests && local.publishes
      description = "Records could not be made jobs of, and come again. Run lowkiq doctor, which tells whether Redis takes pushes, then read \"a record failed\" in the ingest function's log; see docs/runbooks/failed-records.md of lowkiq_lambda."
      namespace   = var.metrics_namespace
      metric      = "records_failed"
      statistic   = "Sum"
      period      = 300
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      periods     = 3
      datapoints  = 1
      missing     = "notBreaching"
      dimensions  = { function = try(aws_lambda_function.function["ingest"].function_name, "") }
    }
    inbox_late = {
      when        = local.has_inbox
      description = "A message waits for too long in the inbox. Run lowkiq doctor, which tells whether Redis takes pushes, then read the ingest function's log; see docs/runbooks/inbox-late.md of lowkiq_lambda."
      comparison  = "GreaterThanThreshold"
      threshold   = var.inbox_age_alarm
      periods     = 5
      datapoints  = 3
      missing     = "notBreaching"
    }
    inbox_dead_letter = {
      when        = local.has_inbox
      description = "Messages of the inbox were set aside. Run lowkiq doctor, correct the cause that the ingest function's log tells, then move them back by aws sqs start-message-move-task; see docs/runbooks/inbox-dead-letters.md of lowkiq_lambda."
      namespace   = "AWS/SQS"
      metric      = "ApproximateNumberOfMessagesVisible"
      statistic   = "Maximum"
      period      = 300
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      periods     = 1
      missing     = "notBreaching"
      dimensions  = { QueueName = one(aws_sqs_queue.inbox_dead_letters[*].name) }
    }
    stream_late = {
      when        = local.takes_stream
      description = "Changes of the stream wait for too long. Run lowkiq doctor, which tells whether Redis takes pushes, then read the ingest function's log; see docs/runbooks/stream-late.md of lowkiq_lambda."
      namespace   = "AWS/Lambda"
      metric      = "IteratorAge"
      statistic   = "Maximum"
      period      = 60
      comparison  = "GreaterThanThreshold"
      threshold   = 300000
      periods     = 5
      datapoints  = 3
      missing     = "notBreaching"
      dimensions  = { FunctionName = try(aws_lambda_function.function["ingest"].function_name, "") }
    }
  }
}

locals {
  failure_metrics = {
    errors  = { namespace = "AWS/Lambda", metric = "Errors", dimensions = { FunctionName = aws_lambda_function.function["drain"].function_name } }
    dropped = { namespace = "AWS/Lambda", metric = "AsyncEventsDropped", dimensions = { FunctionName = aws_lambda_function.function["drain"].function_name } }
    # What is put there, not what lies there for two weeks: then nobody would hear of later ones.
    lost = { namespace = "AWS/SQS", metric = "NumberOfMessagesSent", dimensions = { QueueName = aws_sqs_queue.failure.name } }
  }
  inbox_metrics = {
    age     = { metric = "ApproximateAgeOfOldestMessage", statistic = "Maximum" }
    waiting = { metric = "ApproximateNumberOfMessagesVisible", statistic = "Maximum" }
    flying  = { metric = "ApproximateNumberOfMessagesNotVisible", statistic = "Maximum" }
    taken   = { metric = "NumberOfMessagesDeleted", statistic = "Sum" }
  }

  expressions = {
    # Lambda tells of its own within a minute. The queue's numbers may come a quarter of an hour late, but only they know
    # what a schedule, a rule or a stream gave up. Refusals do not count: Lambda tries again.
    failure = { id = "failures", label = "Failures", expression = "SUM([FILL(errors, 0), FILL(dropped, 0), FILL(lost, 0)])" }
    # The age of a standard queue leaves out messages that were received three times. So its inbox is late, too, where
    # messages are there and none is taken out; they are in flight for most of the time, as each try hides them.
    inbox_late = local.inbox_is_fifo ? null : {
      id         = "late"
      label      = "Seconds that the oldest message waits, or more than it may"
      expression = "IF(FILL(taken, 0) == 0 AND SUM([FILL(waiting, 0), FILL(flying, 0)]) > 0, ${var.inbox_age_alarm} + 1, FILL(age, 0))"
    }
  }
  metrics = {
    failure = { for id, one in local.failure_metrics : id => merge(one, { statistic = "Sum" }) }
    inbox_late = {
      for id, one in local.inbox_metrics :
      id => merge(one, { namespace = "AWS/SQS", dimensions = { QueueName = one(aws_sqs_queue.inbox[*].name) } })
      if id == "age" || !local.inbox_is_fifo
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "alarm" {
  for_each            = { for name, alarm in local.alarms : name => alarm if alarm.when }
  alarm_name          = "${var.name}-${replace(each.key, "_", "-")}"
  alarm_description   = each.value.description
  namespace           = try(each.value.namespace, null)
  metric_name         = try(each.value.metric, null)
  dimensions          = try(each.value.dimensions, null)
  statistic           = try(each.value.statistic, null)
  period              = try(each.value.period, null)
  comparison_operator = each.value.comparison
  threshold           = each.value.threshold
  evaluation_periods  = each.value.periods
  datapoints_to_alarm = try(each.value.datapoints, null)
  treat_missing_data  = each.value.missing
  alarm_actions       = var.alarm_topic_arn == "" ? null : [var.alarm_topic_arn]
  ok_actions          = var.alarm_topic_arn == "" ? null : [var.alarm_topic_arn]

  dynamic "metric_query" {
    for_each = [for query in [lookup(local.expressions, each.key, null)] : query if query != null]
    content {
      id          = metric_query.value.id
      label       = metric_query.value.label
      expression  = metric_query.value.expression
      return_data = true
    }
  }

  dynamic "metric_query" {
    for_each = lookup(local.metrics, each.key, {})
    content {
      id = metric_query.key
      # The only one of its alarm where no expression is made of it.
      return_data = lookup(local.expressions, each.key, null) == null
      metric {
        namespace   = metric_query.value.namespace
        metric_name = metric_query.value.metric
        dimensions  = metric_query.value.dimensions
        stat        = metric_query.value.statistic
        period      = 60
      }
    }
  }
}
