# The stack of template.yaml, by its parameters: functions, roles, logs and the schedules that drain.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws     = { source = "hashicorp/aws", version = ">= 6.25, < 7" }
    archive = { source = "hashicorp/archive", version = ">= 2.4" }
  }
}

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  partition = data.aws_partition.current.partition
  place     = "${data.aws_region.current.region}:${data.aws_caller_identity.current.account_id}"
  function  = "arn:${local.partition}:lambda:${local.place}:function:${var.name}"

  in_vpc   = length(var.subnet_ids) > 0
  uses_iam = var.redis_iam_user != ""
  # Known while a secret is not, where the functions are in a VPC.
  has_access = anytrue([
    local.in_vpc, local.uses_iam, local.has_queue_key, var.tracing == "Active",
    var.redis_secret_arn != "", var.secrets_kms_key_arn != "",
  ])
  has_queue_key = var.queues_kms_key_arn != ""
  has_redis_url = !contains(["", "-"], var.redis_url)
  publishes     = var.metrics != "none"
  is_punctual   = contains(["linger", "punctual"], var.idle)
  starts_drains = contains(["start", "punctual"], var.idle)

  drains_each_shard = var.shard_schedules == "true"
  drains_all        = var.shard_schedules == "false"
  drains_with_ticks = local.drains_all && var.schedule_expression == "rate(1 minute)" && !local.is_punctual

  starts_versions = var.alias == "live"
  # Of the drain function, for what it cannot depend on: itself, and the function beside it.
  qualifier = local.starts_versions ? ":live" : ""

  environment = {
    LOWKIQ_APP                 = var.app_module
    LOWKIQ_REDIS_URL           = local.has_redis_url ? var.redis_url : ""
    LOWKIQ_REDIS_SECRET_ARN    = var.redis_secret_arn
    LOWKIQ_REDIS_IAM           = local.uses_iam ? "user=${var.redis_iam_user},cache=${var.redis_iam_cache},service=${var.redis_iam_service},serverless=${var.redis_iam_serverless}" : ""
    LOWKIQ_NAMESPACE           = var.namespace
    AWS_USE_DUALSTACK_ENDPOINT = tostring(var.dual_stack)
    POWERTOOLS_LOG_LEVEL       = var.log_level
    # Of this module: the functions refuse an older one than their own.
    LOWKIQ_STACK_VERSION     = "1"
    LOWKIQ_VERIFY            = var.verify_share
    LOWKIQ_RELEASE           = var.release
    LOWKIQ_HISTORY_DAYS      = tostring(var.history_days)
    LOWKIQ_AUTO              = var.auto_shards
    LOWKIQ_METRICS           = var.metrics
    LOWKIQ_METRICS_NAMESPACE = var.metrics_namespace
  }

  functions = merge(
    {
      drain = {
        package     = "DrainFunction"
        timeout     = var.drain_timeout
        concurrency = var.drain_concurrency
        environment = {
          LOWKIQ_QUEUES           = join(",", [for queue in concat(var.other_queues, var.queue_schedules) : "-${queue}"])
          LOWKIQ_RESERVE          = tostring(var.drain_reserve)
          LOWKIQ_BURST_AFTER      = tostring(var.burst_after)
          LOWKIQ_SCALING          = tostring(var.scaling)
          LOWKIQ_IDLE             = var.idle
          LOWKIQ_SCHEDULED_SHARDS = local.drains_each_shard ? join(",", var.shard_indexes) : ""
          LOWKIQ_WAKE_FUNCTION    = var.wake_on_push ? "${var.name}-drain${local.qualifier}" : ""
        }
      }
      dashboard = {
        package     = "DashboardFunction"
        timeout     = 29
        concurrency = var.dashboard_concurrency
        environment = {
          LOWKIQ_DASHBOARD_ACCOUNTS        = var.dashboard_accounts
          LOWKIQ_DASHBOARD_SECRET_ARN      = var.dashboard_secret_arn
          LOWKIQ_DASHBOARD_READER_PASSWORD = var.dashboard_reader_password
          LOWKIQ_DASHBOARD_TOKENS          = var.dashboard_tokens
          LOWKIQ_DASHBOARD_CLAIMS          = var.dashboard_claims
          LOWKIQ_DASHBOARD_OPERATORS       = var.dashboard_operators
          LOWKIQ_DASHBOARD_READERS         = var.dashboard_readers
          LOWKIQ_DASHBOARD_BASE_PATH       = var.dashboard_base_path
        }
      }
    },
    local.ingests ? {
      ingest = {
        package = "IngestFunction"
        # A sixth of the visibility timeout of its queues.
        timeout     = 30
        concurrency = var.ingest_concurrency
        environment = {
          LOWKIQ_WAKE_FUNCTION = !var.wake_on_push ? "" : local.qualifier == "" ? "${var.name}-drain" : "${local.function}-drain:live"
          LOWKIQ_INBOX_ARN     = local.has_inbox ? aws_sqs_queue.inbox[0].arn : ""
        }
      }
    } : {}
  )

  # What events, queues and callers start: the alias, or the latest code.
  target = {
    for name in keys(local.functions) :
    name => local.starts_versions ? aws_lambda_alias.live[name].arn : aws_lambda_function.function[name].arn
  }
}

data "archive_file" "package" {
  for_each    = local.functions
  type        = "zip"
  source_dir  = "${var.packages}/${each.value.package}"
  output_path = "${var.packages}/${each.value.package}.zip"
}

resource "aws_lambda_function" "function" {
  for_each                       = local.functions
  function_name                  = "${var.name}-${each.key}"
  handler                        = "lowkiq_lambda.aws.${each.key}_function.handler"
  filename                       = data.archive_file.package[each.key].output_path
  source_code_hash               = data.archive_file.package[each.key].output_base64sha256
  role                           = aws_iam_role.function[each.key].arn
  runtime                        = var.runtime
  architectures                  = [var.architecture]
  memory_size                    = var.memory_size
  timeout                        = each.value.timeout
  reserved_concurrent_executions = each.value.concurrency == 0 ? null : each.value.concurrency
  kms_key_arn                    = var.environment_kms_key_arn == "" ? null : var.environment_kms_key_arn
  # A version has the description that the function has when it is published.
  publish     = local.starts_versions
  description = local.starts_versions ? var.release : null

  environment {
    variables = merge(local.environment, each.value.environment)
  }

  logging_config {
    log_group  = aws_cloudwatch_log_group.function[each.key].name
    log_format = "JSON"
    # Never above INFO, which is what Lambda takes lines of metrics for: they would be lost. The rest is done by
    # POWERTOOLS_LOG_LEVEL.
    application_log_level = var.log_level == "DEBUG" ? "DEBUG" : "INFO"
    # Without the three lines about each invocation that went well.
    system_log_level = "WARN"
  }

  tracing_config {
    mode = var.tracing
  }

  dynamic "snap_start" {
    for_each = var.snap_start ? [1] : []
    content {
      apply_on = "PublishedVersions"
    }
  }

  dynamic "vpc_config" {
    for_each = local.in_vpc ? [1] : []
    content {
      subnet_ids                  = var.subnet_ids
      security_group_ids          = var.security_group_ids
      ipv6_allowed_for_dual_stack = var.dual_stack ? true : null
    }
  }

  # Rights in the network before the function enters it.
  depends_on = [aws_iam_role_policy_attachment.access]
}

resource "aws_lambda_alias" "live" {
  for_each         = { for name in keys(local.functions) : name => name if local.starts_versions }
  name             = "live"
  function_name    = aws_lambda_function.function[each.key].function_name
  function_version = aws_lambda_function.function[each.key].version

  # `lowkiq stack rollback` notes there which versions it took back.
  lifecycle {
    ignore_changes = [description]
  }
}

resource "aws_lambda_function_recursion_config" "drain" {
  function_name = aws_lambda_function.function["drain"].function_name
  # A chain of drains is what Lambda takes for a runaway after sixteen; ours has an end of its own.
  recursive_loop = local.starts_drains ? "Allow" : "Terminate"
}

# Of drains: the next minute's event does what this one did not. One that finds no concurrency left waits: so shards
# take turns in an account of ten. Of events: nobody else keeps these.
resource "aws_lambda_function_event_invoke_config" "invocation" {
  for_each                     = { for name in keys(local.functions) : name => name if name != "dashboard" }
  function_name                = aws_lambda_function.function[each.key].function_name
  qualifier                    = local.starts_versions ? aws_lambda_alias.live[each.key].name : "$LATEST"
  maximum_retry_attempts       = each.key == "drain" ? 0 : 2
  maximum_event_age_in_seconds = each.key == "drain" ? 600 : 21600

  destination_config {
    on_failure {
      destination = aws_sqs_queue.failure.arn
    }
  }
}

resource "aws_cloudwatch_log_group" "function" {
  for_each          = local.functions
  name              = "/aws/lambda/${var.name}-${each.key}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.logs_kms_key_arn == "" ? null : var.logs_kms_key_arn
}

resource "aws_sqs_queue" "failure" {
  name                      = "${var.name}-failures"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = local.has_queue_key ? null : true
  kms_master_key_id         = local.has_queue_key ? var.queues_kms_key_arn : null
}

locals {
  shards = local.drains_each_shard ? {
    for index in var.shard_indexes : "shard-${index}" => {
      description = "Drains shard ${index} of every queue that has one."
      expression  = var.schedule_expression
      input       = "{\"shard\": ${index}}"
    }
  } : {}
  queues = {
    for queue in var.queue_schedules : "queue-${queue}" => {
      description = "Drains all shards of queue ${queue}."
      expression  = var.schedule_expression
      input       = "{\"queue\": \"${queue}\"}"
    }
  }
  schedules = merge(local.shards, local.queues, {
    minute = {
      description = "The app's housekeeping, which publishes its numbers; behind it all shards are drained, where one schedule does both."
      # With the minute, as most schedule entries of an app do; `rate` counts from the deploy.
      expression = "cron(* * * * ? *)"
      input      = local.drains_with_ticks ? "{\"tick\": true}" : "{\"tick\": \"only\"}"
    } },
    # A housekeeping run comes each minute, and one that stays for its minute would keep the drain behind it waiting.
    local.drains_all && !local.drains_with_ticks ? {
      drain = {
        description = "Drains all shards, beside the housekeeping run."
        expression  = var.schedule_expression
        input       = "{}"
      }
    } : {}
  )
}

resource "aws_scheduler_schedule_group" "shards" {
  name = "${var.name}-shards"

  # Once for the whole stack: rules.tf says what does not fit together.
  lifecycle {
    precondition {
      condition     = nonsensitive(length(local.refusals) == 0)
      error_message = nonsensitive(join(" ", local.refusals))
    }
  }
}

resource "aws_scheduler_schedule" "schedule" {
  for_each            = local.schedules
  name                = each.key
  group_name          = aws_scheduler_schedule_group.shards.name
  description         = each.value.description
  state               = var.schedule_state
  schedule_expression = each.value.expression

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = local.target["drain"]
    role_arn = aws_iam_role.scheduler.arn
    input    = each.value.input

    # Leases make a double start harmless, so a passing fault of Lambda's API costs no minute.
    retry_policy {
      maximum_retry_attempts       = 2
      maximum_event_age_in_seconds = 60
    }

    dead_letter_config {
      arn = aws_sqs_queue.failure.arn
    }
  }
}
