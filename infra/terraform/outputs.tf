output "dashboard_url" {
  description = "The dashboard."
  value       = "${aws_apigatewayv2_api.dashboard.api_endpoint}/"
}

output "drain_function_name" {
  description = "The name of the function that drains shards."
  value       = aws_lambda_function.function["drain"].function_name
}

output "drain_function_arn" {
  description = "The ARN of the function that drains shards, or of its alias, which LOWKIQ_WAKE_FUNCTION names where pushes shall start drains."
  value       = local.target["drain"]
}

output "drain_role_arn" {
  description = "As whom handlers run; grant it what they need."
  value       = aws_iam_role.function["drain"].arn
}

output "drain_role_name" {
  description = "The name of that role, for aws_iam_role_policy."
  value       = aws_iam_role.function["drain"].name
}

output "dashboard_function_name" {
  description = "The name of the function that serves the dashboard."
  value       = aws_lambda_function.function["dashboard"].function_name
}

output "scheduler_role_arn" {
  description = "As whom schedules start functions."
  value       = aws_iam_role.scheduler.arn
}

output "schedule_group_name" {
  description = "Where the schedules of this stack are."
  value       = aws_scheduler_schedule_group.shards.name
}

output "ingest_function_name" {
  description = "The name of the function that makes jobs of events."
  value       = local.ingests ? aws_lambda_function.function["ingest"].function_name : null
}

output "ingest_function_arn" {
  description = "For notifications of buckets, which name the function themselves."
  value       = local.ingests ? local.target["ingest"] : null
}

output "inbox_url" {
  description = "What SqsInbox takes, in the processes that push."
  value       = one(aws_sqs_queue.inbox[*].url)
}

output "inbox_arn" {
  description = "Where those processes need sqs:SendMessage."
  value       = one(aws_sqs_queue.inbox[*].arn)
}

output "inbox_dead_letters_url" {
  description = "Where messages end that failed too often."
  value       = one(aws_sqs_queue.inbox_dead_letters[*].url)
}

output "failure_queue_arn" {
  description = "Where events end that failed or came to nothing."
  value       = aws_sqs_queue.failure.arn
}
