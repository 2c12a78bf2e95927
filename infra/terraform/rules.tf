# Made of the rules of template.yaml by `make reference`.

locals {
  refusals = [for rule in [
    { holds = !(!(var.shard_schedules == "true")) || length(setsubtract(var.shard_indexes, ["0", "1", "2", "3", "4"])) == 0, text = "ShardIndexes names the shards that ShardSchedules=true gives a schedule each, leave it out." },
    { holds = !(var.shard_schedules == "none") || var.schedule_expression == "rate(1 minute)", text = "ScheduleExpression says when shards are drained, which ShardSchedules=none leaves to others." },
    { holds = !((contains(["", "-"], tostring(var.redis_url)) && var.redis_secret_arn == "")), text = "Name the Redis server, give RedisUrl or RedisSecretArn." },
    { holds = !(!(var.redis_iam_user == "")) || !(var.redis_iam_cache == ""), text = "RedisIamUser needs RedisIamCache, the name of what it signs in to." },
    { holds = !(!(var.redis_iam_user == "")) || var.redis_secret_arn == "", text = "With RedisIamUser the URL holds no secret, give it as RedisUrl and not as RedisSecretArn." },
    { holds = !(!(var.redis_iam_user == "")) || !(length(var.subnet_ids) == 0), text = "Caches with IAM are reached from their VPC only, give SubnetIds and SecurityGroupIds." },
    { holds = !(!(var.redis_iam_cache == "")) || !(var.redis_iam_user == ""), text = "RedisIamCache needs RedisIamUser, the user to sign in as." },
    { holds = !(var.redis_iam_service == "memorydb") || var.redis_iam_serverless == false, text = "RedisIamServerless is for ElastiCache, MemoryDB has none." },
    { holds = ((length(var.subnet_ids) == 0 && length(var.security_group_ids) == 0) || (!(length(var.subnet_ids) == 0) && !(length(var.security_group_ids) == 0))), text = "Give SubnetIds and SecurityGroupIds together, or neither." },
    { holds = (var.dual_stack == false || !(length(var.subnet_ids) == 0)), text = "DualStack is for functions in a VPC, give SubnetIds and SecurityGroupIds." },
    { holds = !(!(var.dashboard_claims == "")) || !((var.dashboard_operators == "" && var.dashboard_readers == "")), text = "DashboardClaims needs DashboardOperators or DashboardReaders, the rules on who may do what." },
    { holds = !(!((var.dashboard_operators == "" && var.dashboard_readers == ""))) || !(var.dashboard_claims == ""), text = "DashboardOperators and DashboardReaders are rules on claims, say with DashboardClaims on whose." },
    { holds = !(var.dashboard_claims == "jwt") || !((var.dashboard_jwt_issuer == "" || var.dashboard_jwt_audience == "")), text = "With DashboardClaims=jwt give DashboardJwtIssuer and DashboardJwtAudience." },
    { holds = !(var.message_batching_window == 0) || contains(["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"], tostring(var.message_batch_size)), text = "A MessageBatchSize above 10 takes time to collect, give a MessageBatchingWindow." },
    { holds = !((var.inbox == "fifo" && var.ingest_queue_arn == "")) || var.message_batching_window == 0, text = "MessageBatchingWindow is for standard queues, which Inbox=fifo is not." },
    { holds = (var.message_filter == "" || !(var.ingest_queue_arn == "")), text = "MessageFilter is for messages of IngestQueueArn, which is not given." },
    { holds = (var.stream_filter == "" || !(var.ingest_stream_arn == "")), text = "StreamFilter is for changes of IngestStreamArn, which is not given." },
    { holds = (length(var.ingest_event_types) == 0 || !(length(var.ingest_event_sources) == 0)), text = "IngestEventTypes is for events of IngestEventSources, which is not given." },
    { holds = !(var.alias == "live") || !(var.release == ""), text = "With Alias=live each deploy starts what Release names, give it, another one for each." },
    { holds = !(var.snap_start == true) || var.alias == "live", text = "SnapStart is for published versions, give Alias=live." },
    { holds = !(var.snap_start == true) || !(var.runtime == "python3.11"), text = "SnapStart takes Python 3.12 or newer, give another Runtime." },
    { holds = !(var.metrics == "none") || (var.blocked_alarm == false && var.schedule_alarm == false), text = "BlockedAlarm and ScheduleAlarm watch metrics, which Metrics=none does not publish." },
  ] : rule.text if !rule.holds]
}
