# Ways in: an inbox, queues, streams and events whose messages become jobs.

locals {
  has_inbox     = var.inbox != "none"
  inbox_is_fifo = var.inbox == "fifo"
  takes_queue   = var.ingest_queue_arn != ""
  takes_stream  = var.ingest_stream_arn != ""
  takes_events  = length(var.ingest_event_sources) > 0
  takes_buckets = length(var.ingest_buckets) > 0
  ingests       = local.has_inbox || local.takes_queue || local.takes_stream || local.takes_events || local.takes_buckets

  rules = merge(
    local.takes_events ? {
      ingest = {
        description = "Hands events to the ingest function."
        bus         = var.ingest_event_bus
        pattern = merge(
          { source = var.ingest_event_sources },
          length(var.ingest_event_types) > 0 ? { detail-type = var.ingest_event_types } : {}
        )
      }
    } : {},
    local.takes_buckets ? {
      bucket = {
        description = "Hands events of buckets to the ingest function."
        bus         = null
        pattern = {
          source      = ["aws.s3"]
          detail-type = var.ingest_bucket_events
          detail      = { bucket = { name = var.ingest_buckets } }
        }
      }
    } : {}
  )
}

resource "aws_sqs_queue" "inbox" {
  count      = local.has_inbox ? 1 : 0
  name       = "${var.name}-inbox${local.inbox_is_fifo ? ".fifo" : ""}"
  fifo_queue = local.inbox_is_fifo ? true : null
  # Ids do not share the throughput of one queue.
  deduplication_scope        = local.inbox_is_fifo ? "messageGroup" : null
  fifo_throughput_limit      = local.inbox_is_fifo ? "perMessageGroupId" : null
  visibility_timeout_seconds = 180
  message_retention_seconds  = 1209600
  max_message_size           = 1048576
  sqs_managed_sse_enabled    = local.has_queue_key ? null : true
  kms_master_key_id          = local.has_queue_key ? var.queues_kms_key_arn : null
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.inbox_dead_letters[0].arn
    maxReceiveCount     = var.inbox_receives
  })
}

resource "aws_sqs_queue" "inbox_dead_letters" {
  count                     = local.has_inbox ? 1 : 0
  name                      = "${var.name}-inbox-dead-letters${local.inbox_is_fifo ? ".fifo" : ""}"
  fifo_queue                = local.inbox_is_fifo ? true : null
  message_retention_seconds = 1209600
  max_message_size          = 1048576
  sqs_managed_sse_enabled   = local.has_queue_key ? null : true
  kms_master_key_id         = local.has_queue_key ? var.queues_kms_key_arn : null
}

resource "aws_lambda_event_source_mapping" "inbox" {
  count                              = local.has_inbox ? 1 : 0
  event_source_arn                   = aws_sqs_queue.inbox[0].arn
  function_name                      = local.target["ingest"]
  batch_size                         = local.inbox_is_fifo ? 10 : var.message_batch_size
  maximum_batching_window_in_seconds = local.inbox_is_fifo ? null : var.message_batching_window
  function_response_types            = ["ReportBatchItemFailures"]

  scaling_config {
    maximum_concurrency = var.message_concurrency
  }

  depends_on = [aws_iam_role_policy.function]
}

resource "aws_lambda_event_source_mapping" "queue" {
  count            = local.takes_queue ? 1 : 0
  event_source_arn = var.ingest_queue_arn
  function_name    = local.target["ingest"]
  batch_size       = var.message_batch_size
  # Not as 0: a queue of the kind FIFO takes none at all.
  maximum_batching_window_in_seconds = var.message_batching_window == 0 ? null : var.message_batching_window
  function_response_types            = ["ReportBatchItemFailures"]

  scaling_config {
    maximum_concurrency = var.message_concurrency
  }

  dynamic "filter_criteria" {
    for_each = var.message_filter == "" ? [] : [var.message_filter]
    content {
      filter {
        pattern = filter_criteria.value
      }
    }
  }

  depends_on = [aws_iam_role_policy.function]
}

resource "aws_lambda_event_source_mapping" "stream" {
  count                              = local.takes_stream ? 1 : 0
  event_source_arn                   = var.ingest_stream_arn
  function_name                      = local.target["ingest"]
  starting_position                  = "TRIM_HORIZON"
  batch_size                         = var.stream_batch_size
  maximum_batching_window_in_seconds = var.stream_batching_window
  parallelization_factor             = var.stream_concurrency
  function_response_types            = ["ReportBatchItemFailures"]
  # A change that fails holds its shard until it is given up; then the failure queue tells of it.
  maximum_retry_attempts         = var.stream_retries
  bisect_batch_on_function_error = var.stream_bisect
  maximum_record_age_in_seconds  = var.stream_record_age

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.failure.arn
    }
  }

  dynamic "filter_criteria" {
    for_each = var.stream_filter == "" ? [] : [var.stream_filter]
    content {
      filter {
        pattern = filter_criteria.value
      }
    }
  }

  depends_on = [aws_iam_role_policy.function]
}

resource "aws_cloudwatch_event_rule" "rule" {
  for_each       = local.rules
  name_prefix    = "${local.prefix}-${each.key}-"
  description    = each.value.description
  event_bus_name = each.value.bus
  event_pattern  = jsonencode(each.value.pattern)
}

resource "aws_cloudwatch_event_target" "ingest" {
  for_each       = local.rules
  rule           = aws_cloudwatch_event_rule.rule[each.key].name
  event_bus_name = each.value.bus
  target_id      = "ingest"
  arn            = local.target["ingest"]

  dead_letter_config {
    arn = aws_sqs_queue.failure.arn
  }
}

resource "aws_lambda_permission" "rule" {
  for_each      = local.rules
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.function["ingest"].function_name
  qualifier     = local.starts_versions ? aws_lambda_alias.live["ingest"].name : null
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.rule[each.key].arn
}

resource "aws_sqs_queue_policy" "failure" {
  count     = length(local.rules) > 0 ? 1 : 0
  queue_url = aws_sqs_queue.failure.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TellOfLostEvents"
      Effect    = "Allow"
      Principal = { Service = "events.amazonaws.com" }
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.failure.arn
      Condition = { ArnEquals = { "aws:SourceArn" = [for name in sort(keys(local.rules)) : aws_cloudwatch_event_rule.rule[name].arn] } }
    }]
  })
}
