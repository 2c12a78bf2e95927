# Made of the parameters of template.yaml by `make reference`.

variable "name" {
  description = "The name of the stack, with which the names of its parts begin."
  type        = string
  default     = "lowkiq"
  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{0,50}$", var.name))
    error_message = "It needs a letter, then letters, digits and -, 51 in all."
  }
}

variable "packages" {
  description = "The folder with DrainFunction, DashboardFunction and, with a way in, IngestFunction."
  type        = string
}

variable "app_module" {
  description = "The app with the workers, as MODULE:APP, seen from the folder app/."
  type        = string
  default     = "jobs:app"
  validation {
    condition     = can(regex("^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$", var.app_module))
    error_message = "It must be MODULE:APP, such as shop.jobs:app."
  }
}

variable "schedule_state" {
  description = "DISABLED stops all schedules without deleting anything."
  type        = string
  default     = "ENABLED"
  validation {
    condition     = contains(["ENABLED", "DISABLED"], var.schedule_state)
    error_message = "It must be one of ENABLED, DISABLED."
  }
}

variable "shard_schedules" {
  description = "true drains each shard by a schedule of its own, false all by one, which costs less; none leaves drains to others."
  type        = string
  default     = "true"
  validation {
    condition     = contains(["true", "false", "none"], var.shard_schedules)
    error_message = "It must be one of true, false, none."
  }
}

variable "shard_indexes" {
  description = "Shards with a schedule, as many as the app's largest shards_count, from 0. `lowkiq stack schedules indexes` prints it."
  type        = list(string)
  default     = ["0", "1", "2", "3", "4"]
}

variable "queue_schedules" {
  description = "Queues with a schedule of their own, which drains all their shards; the other schedules leave them out. Whatever ShardSchedules is."
  type        = list(string)
  default     = []
  validation {
    condition     = can(regex("^[0-9A-Za-z_.,-]*$", join(",", var.queue_schedules)))
    error_message = "It must match ^[0-9A-Za-z_.,-]*$."
  }
}

variable "schedule_expression" {
  description = "When shards are drained. Housekeeping runs each minute all the same."
  type        = string
  default     = "rate(1 minute)"
  validation {
    condition     = can(regex("^(rate|cron)\\(.+\\)$", var.schedule_expression))
    error_message = "It must match ^(rate|cron)\\(.+\\)$."
  }
}

variable "redis_url" {
  description = "redis://, rediss:// or rediss+cluster:// URL; \"-\" is none. With a password rather use RedisSecretArn."
  type        = string
  default     = ""
  sensitive   = true
  validation {
    condition     = !can(regex("^\\s*embedded:", var.redis_url))
    error_message = "It must match ^(?!\\s*embedded:).*$."
  }
}

variable "redis_secret_arn" {
  description = "A secret whose text is the URL, in place of RedisUrl, or JSON with username and password, beside it. In a VPC it takes a route to Secrets Manager."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(arn:[^:]+:secretsmanager:[^:]+:[0-9]*:secret:.+)?$", var.redis_secret_arn))
    error_message = "It must match ^(arn:[^:]+:secretsmanager:[^:]+:[0-9]*:secret:.+)?$."
  }
}

variable "redis_iam_user" {
  description = "Signs in to ElastiCache or MemoryDB as this user by IAM; RedisUrl then has no password."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^([A-Za-z][A-Za-z0-9-]*)?$", var.redis_iam_user))
    error_message = "It must match ^([A-Za-z][A-Za-z0-9-]*)?$."
  }
}

variable "redis_iam_cache" {
  description = "The name of the cache, replication group or cluster that RedisIamUser signs in to."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^([A-Za-z][A-Za-z0-9-]*)?$", var.redis_iam_cache))
    error_message = "It must match ^([A-Za-z][A-Za-z0-9-]*)?$."
  }
}

variable "redis_iam_service" {
  description = "Whose the cache is."
  type        = string
  default     = "elasticache"
  validation {
    condition     = contains(["elasticache", "memorydb"], var.redis_iam_service)
    error_message = "It must be one of elasticache, memorydb."
  }
}

variable "redis_iam_serverless" {
  description = "true for ElastiCache Serverless."
  type        = bool
  default     = false
}

variable "namespace" {
  description = "Stands before all keys and channels in Redis, so that stacks with different ones share a server and nothing on it."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^[0-9A-Za-z._-]{0,40}$", var.namespace))
    error_message = "It must match ^[0-9A-Za-z._-]{0,40}$."
  }
}

variable "secrets_kms_key_arn" {
  description = "The key of the secrets, where it is one of your own."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(arn:[^:]+:kms:.+:key/.+)?$", var.secrets_kms_key_arn))
    error_message = "It must match ^(arn:[^:]+:kms:.+:key/.+)?$."
  }
}

variable "subnet_ids" {
  description = "Subnets with a way to Redis; empty for functions outside of any VPC."
  type        = list(string)
  default     = []
  validation {
    condition     = can(regex("^(subnet-[0-9a-z]+(,subnet-[0-9a-z]+)*)?$", join(",", var.subnet_ids)))
    error_message = "It must match ^(subnet-[0-9a-z]+(,subnet-[0-9a-z]+)*)?$."
  }
}

variable "security_group_ids" {
  description = "Security groups that Redis lets in; together with SubnetIds."
  type        = list(string)
  default     = []
  validation {
    condition     = can(regex("^(sg-[0-9a-z]+(,sg-[0-9a-z]+)*)?$", join(",", var.security_group_ids)))
    error_message = "It must match ^(sg-[0-9a-z]+(,sg-[0-9a-z]+)*)?$."
  }
}

variable "dual_stack" {
  description = "true where the subnets have IPv6 as well, and calls of AWS's APIs go by it, those of handlers, too."
  type        = bool
  default     = false
}

variable "runtime" {
  description = "The Python of the functions. Give `sam build` the same value."
  type        = string
  default     = "python3.13"
  validation {
    condition     = contains(["python3.11", "python3.12", "python3.13", "python3.14"], var.runtime)
    error_message = "It must be one of python3.11, python3.12, python3.13, python3.14."
  }
}

variable "architecture" {
  description = "The processor of the functions; arm64 is cheaper. Give `sam build` the same value."
  type        = string
  default     = "arm64"
  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "It must be one of arm64, x86_64."
  }
}

variable "memory_size" {
  description = "Megabytes for each function; the share of a processor grows with them."
  type        = number
  default     = 256
  validation {
    condition     = var.memory_size >= 128 && var.memory_size <= 10240
    error_message = "It must be 128 to 10240."
  }
}

variable "drain_timeout" {
  description = "Seconds that a drain may take. More than your slowest batch; a drain that is done ends sooner."
  type        = number
  default     = 300
  validation {
    condition     = var.drain_timeout >= 10 && var.drain_timeout <= 900
    error_message = "It must be 10 to 900."
  }
}

variable "burst_after" {
  description = "Seconds that a shard's due work has to wait without a holder before a drain takes it, beside daemons that take all else; 0 for none."
  type        = number
  default     = 0
  validation {
    condition     = var.burst_after >= 0 && var.burst_after <= 86400
    error_message = "It must be 0 to 86400."
  }
}

variable "drain_reserve" {
  description = "Seconds of DrainTimeout in which no batch starts or goes on."
  type        = number
  default     = 3
  validation {
    condition     = var.drain_reserve >= 0 && var.drain_reserve <= 600
    error_message = "It must be 0 to 600."
  }
}

variable "drain_concurrency" {
  description = "Reserves that many concurrent drains and housekeeping runs, and allows no more. 0 reserves none, as new accounts need."
  type        = number
  default     = 0
  validation {
    condition     = var.drain_concurrency >= 0
    error_message = "It must be 0 or more."
  }
}

variable "ingest_concurrency" {
  description = "Reserves that many concurrent invocations of the ingest function, and allows no more; no less than MessageConcurrency for each queue. 0 reserves none."
  type        = number
  default     = 0
  validation {
    condition     = var.ingest_concurrency >= 0
    error_message = "It must be 0 or more."
  }
}

variable "dashboard_concurrency" {
  description = "Reserves that many concurrent requests of the dashboard, and allows no more. 0 reserves none."
  type        = number
  default     = 0
  validation {
    condition     = var.dashboard_concurrency >= 0
    error_message = "It must be 0 or more."
  }
}

variable "other_queues" {
  description = "Queues that functions of their own drain (infra/queue-function.yaml)."
  type        = list(string)
  default     = []
  validation {
    condition     = can(regex("^([^,]+(,[^,]+)*)?$", join(",", var.other_queues)))
    error_message = "It must match ^([^,]+(,[^,]+)*)?$."
  }
}

variable "alias" {
  description = "live lets each Release publish versions of the functions, and all start those of this alias, which `lowkiq stack rollback` moves. Empty starts the latest code."
  type        = string
  default     = ""
  validation {
    condition     = contains(["", "live"], var.alias)
    error_message = "It must be one of , live."
  }
}

variable "idle" {
  description = "What an invocation does without due work, and for work that it cannot do; see docs/waking.md. All but end and stay are billed."
  type        = string
  default     = "stay"
  validation {
    condition     = contains(["end", "stay", "linger", "start", "punctual"], var.idle)
    error_message = "It must be one of end, stay, linger, start, punctual."
  }
}

variable "wake_on_push" {
  description = "true lets handlers that push start drains for what they push. In a VPC it takes a route to Lambda."
  type        = bool
  default     = false
}

variable "snap_start" {
  description = "true starts environments from a snapshot of each version, which is billed. It takes Alias=live and Python 3.12 or newer."
  type        = bool
  default     = false
}

variable "inbox" {
  description = "fifo or standard makes a queue of SQS for pushes by SqsInbox. Empty it before a change of the kind."
  type        = string
  default     = "none"
  validation {
    condition     = contains(["none", "fifo", "standard"], var.inbox)
    error_message = "It must be one of none, fifo, standard."
  }
}

variable "inbox_receives" {
  description = "How often a message of the inbox is tried, each three minutes, before it is set aside."
  type        = number
  default     = 20
  validation {
    condition     = var.inbox_receives >= 1 && var.inbox_receives <= 1000
    error_message = "It must be 1 to 1000."
  }
}

variable "inbox_age_alarm" {
  description = "Seconds that the oldest message of the inbox may wait before an alarm. A standard inbox also rings where none is taken for three minutes."
  type        = number
  default     = 300
  validation {
    condition     = var.inbox_age_alarm >= 1
    error_message = "It must be 1 or more."
  }
}

variable "ingest_queue_arn" {
  description = "A queue of SQS of yours whose messages become jobs. Its visibility timeout must be 180 seconds or more."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(arn:[^:]+:sqs:[^:]+:[0-9]*:.+)?$", var.ingest_queue_arn))
    error_message = "It must match ^(arn:[^:]+:sqs:[^:]+:[0-9]*:.+)?$."
  }
}

variable "ingest_stream_arn" {
  description = "A stream of DynamoDB whose changes become jobs."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(arn:[^:]+:dynamodb:[^:]+:[0-9]*:table/.+/stream/.+)?$", var.ingest_stream_arn))
    error_message = "It must match ^(arn:[^:]+:dynamodb:[^:]+:[0-9]*:table/.+/stream/.+)?$."
  }
}

variable "message_batch_size" {
  description = "Messages of the inbox or IngestQueueArn in an invocation. More than 10 take standard queues and a MessageBatchingWindow."
  type        = number
  default     = 10
  validation {
    condition     = var.message_batch_size >= 1 && var.message_batch_size <= 1000
    error_message = "It must be 1 to 1000."
  }
}

variable "message_batching_window" {
  description = "Seconds in which messages of standard queues are collected for an invocation. Queues of the kind FIFO take none."
  type        = number
  default     = 0
  validation {
    condition     = var.message_batching_window >= 0 && var.message_batching_window <= 60
    error_message = "It must be 0 to 60."
  }
}

variable "message_concurrency" {
  description = "How many invocations the inbox may start at once, and as many IngestQueueArn, so that a burst leaves drains their share of the account."
  type        = number
  default     = 5
  validation {
    condition     = var.message_concurrency >= 2 && var.message_concurrency <= 1000
    error_message = "It must be 2 to 1000."
  }
}

variable "message_filter" {
  description = "A pattern in JSON for messages of IngestQueueArn. Lambda deletes the others."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(\\{.*\\})?$", var.message_filter))
    error_message = "It must be a JSON object."
  }
}

variable "stream_batch_size" {
  description = "Changes of the stream in an invocation."
  type        = number
  default     = 100
  validation {
    condition     = var.stream_batch_size >= 1 && var.stream_batch_size <= 1000
    error_message = "It must be 1 to 1000."
  }
}

variable "stream_batching_window" {
  description = "Seconds in which changes are collected for an invocation."
  type        = number
  default     = 0
  validation {
    condition     = var.stream_batching_window >= 0 && var.stream_batching_window <= 300
    error_message = "It must be 0 to 300."
  }
}

variable "stream_concurrency" {
  description = "Invocations at once for each shard of the stream. Changes of an item stay in their order."
  type        = number
  default     = 1
  validation {
    condition     = var.stream_concurrency >= 1 && var.stream_concurrency <= 10
    error_message = "It must be 1 to 10."
  }
}

variable "stream_filter" {
  description = "A pattern in JSON for changes of the stream. The others are skipped."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(\\{.*\\})?$", var.stream_filter))
    error_message = "It must be a JSON object."
  }
}

variable "stream_retries" {
  description = "How often a change that fails is tried again before it goes to the failure queue; -1 for as long as StreamRecordAge."
  type        = number
  default     = -1
  validation {
    condition     = var.stream_retries >= -1 && var.stream_retries <= 10000
    error_message = "It must be -1 to 10000."
  }
}

variable "stream_bisect" {
  description = "true halves a batch whose invocation fails, so that one change that kills the function is found."
  type        = bool
  default     = false
}

variable "stream_record_age" {
  description = "Seconds after which a change that fails goes to the failure queue, and the others behind it go on."
  type        = number
  default     = 21600
  validation {
    condition     = var.stream_record_age >= 60 && var.stream_record_age <= 86400
    error_message = "It must be 60 to 86400."
  }
}

variable "ingest_event_sources" {
  description = "Sources of EventBridge whose events become jobs; aws.s3 for buckets that tell EventBridge."
  type        = list(string)
  default     = []
  validation {
    condition     = can(regex("^([^, ]+(,[^, ]+)*)?$", join(",", var.ingest_event_sources)))
    error_message = "It must match ^([^, ]+(,[^, ]+)*)?$."
  }
}

variable "ingest_event_bus" {
  description = "The bus of IngestEventSources, by its name or ARN."
  type        = string
  default     = "default"
  validation {
    condition     = can(regex("^[^ ]+$", var.ingest_event_bus))
    error_message = "It must match ^[^ ]+$."
  }
}

variable "ingest_event_types" {
  description = "The detail-types of these sources whose events become jobs; empty for all."
  type        = list(string)
  default     = []
  validation {
    condition     = can(regex("^([^,]+(,[^,]+)*)?$", join(",", var.ingest_event_types)))
    error_message = "It must match ^([^,]+(,[^,]+)*)?$."
  }
}

variable "ingest_buckets" {
  description = "Buckets that tell EventBridge, whose events become jobs. Others stay out, as they don't with aws.s3."
  type        = list(string)
  default     = []
  validation {
    condition     = can(regex("^([a-z0-9.-]+(,[a-z0-9.-]+)*)?$", join(",", var.ingest_buckets)))
    error_message = "It must match ^([a-z0-9.-]+(,[a-z0-9.-]+)*)?$."
  }
}

variable "ingest_bucket_events" {
  description = "The detail-types of these events."
  type        = list(string)
  default     = ["Object Created"]
  validation {
    condition     = can(regex("^[^,]+(,[^,]+)*$", join(",", var.ingest_bucket_events)))
    error_message = "It must match ^[^,]+(,[^,]+)*$."
  }
}

variable "dashboard_accounts" {
  description = "The people who may use the dashboard, each with a hashed password of their own, so that its activity names who did what."
  type        = string
  default     = ""
  validation {
    condition     = length(var.dashboard_accounts) <= 3200
    error_message = "It must have at most 3200 letters."
  }
  validation {
    condition     = can(regex("^([^:, ]+:(operator|reader|editor):scrypt:[0-9]+:[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+(,[^:, ]+:(operator|reader|editor):scrypt:[0-9]+:[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+)*)?$", var.dashboard_accounts))
    error_message = "It must be NAME:operator:HASH, NAME:reader:HASH or NAME:editor:HASH, several after commas, with what lowkiq_lambda.dashboard.hashed makes of each password."
  }
}

variable "dashboard_secret_arn" {
  description = "A secret whose text is a password that all who may act on the dashboard share; activity then names nobody."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(arn:[^:]+:secretsmanager:[^:]+:[0-9]*:secret:.+)?$", var.dashboard_secret_arn))
    error_message = "It must match ^(arn:[^:]+:secretsmanager:[^:]+:[0-9]*:secret:.+)?$."
  }
}

variable "dashboard_reader_password" {
  description = "A password that all who may only look share, hashed."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(scrypt:[0-9]+:[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+)?$", var.dashboard_reader_password))
    error_message = "It must be the line that lowkiq_lambda.dashboard.hashed makes of the password."
  }
}

variable "dashboard_tokens" {
  description = "Programs that may use the dashboard's API, each with the digest of its token."
  type        = string
  default     = ""
  validation {
    condition     = length(var.dashboard_tokens) <= 3200
    error_message = "It must have at most 3200 letters."
  }
  validation {
    condition     = can(regex("^([^:, ]+:(operator|reader):sha256:[0-9a-f]{64}(,[^:, ]+:(operator|reader):sha256:[0-9a-f]{64})*)?$", var.dashboard_tokens))
    error_message = "It must be NAME:operator:sha256:DIGEST or NAME:reader:sha256:DIGEST, several after commas."
  }
}

variable "dashboard_claims" {
  description = "jwt or iam lets API Gateway check tokens or signatures, and nobody else in; their claims give the role."
  type        = string
  default     = ""
  validation {
    condition     = contains(["", "jwt", "iam"], var.dashboard_claims)
    error_message = "It must be one of , jwt, iam."
  }
}

variable "dashboard_jwt_issuer" {
  description = "Whose tokens DashboardClaims=jwt takes, as in https://cognito-idp.eu-west-1.amazonaws.com/POOL."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(https?://[^, ]+)?$", var.dashboard_jwt_issuer))
    error_message = "It must match ^(https?://[^, ]+)?$."
  }
}

variable "dashboard_jwt_audience" {
  description = "For whom these tokens must be made, the client's id; several after commas."
  type        = string
  default     = ""
}

variable "dashboard_operators" {
  description = "With DashboardClaims, the claim of people who may act, as in cognito:groups=operators; * and ? stand for any letters."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^([^=,]+=[^,]+(,[^=,]+=[^,]+)*)?$", var.dashboard_operators))
    error_message = "It must be CLAIM=VALUE, several after commas."
  }
}

variable "dashboard_readers" {
  description = "With DashboardClaims, the claim of people who may look."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^([^=,]+=[^,]+(,[^=,]+=[^,]+)*)?$", var.dashboard_readers))
    error_message = "It must be CLAIM=VALUE, several after commas."
  }
}

variable "dashboard_base_path" {
  description = "The path in front of the dashboard's own, where a domain name of yours is mapped with one."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(/[A-Za-z0-9._~/-]*)?$", var.dashboard_base_path))
    error_message = "It must match ^(/[A-Za-z0-9._~/-]*)?$."
  }
}

variable "log_level" {
  description = "From which level on the functions log, and loggers of Powertools in handlers."
  type        = string
  default     = "INFO"
  validation {
    condition     = contains(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], var.log_level)
    error_message = "It must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL."
  }
}

variable "log_retention_days" {
  description = "How long logs are kept."
  type        = number
  default     = 30
  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "It must be one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653."
  }
}

variable "metrics" {
  description = "summary publishes two metrics of the app, queues those of each queue too, which are billed one by one."
  type        = string
  default     = "summary"
  validation {
    condition     = contains(["none", "summary", "queues"], var.metrics)
    error_message = "It must be one of none, summary, queues."
  }
}

variable "metrics_namespace" {
  description = "The namespace of the metrics. Stacks may share it."
  type        = string
  default     = "lowkiq"
  validation {
    condition     = can(regex("^[0-9A-Za-z.\\-_/#]{1,255}$", var.metrics_namespace))
    error_message = "It must match ^[0-9A-Za-z.\\-_/#]{1,255}$."
  }
}

variable "blocked_alarm" {
  description = "true for an alarm that rings while any id is blocked, where a worker has dead_head = \"block\"."
  type        = bool
  default     = false
}

variable "schedule_alarm" {
  description = "true for an alarm that rings when schedule entries have missed planned times."
  type        = bool
  default     = false
}

variable "verify_share" {
  description = "The share of the shards' time that housekeeping verifies by their journals, such as 0.01; 0 verifies nothing."
  type        = string
  default     = "0"
  validation {
    condition     = can(regex("^(0|0?\\.[0-9]{1,6}|1)$", var.verify_share))
    error_message = "It must match ^(0|0?\\.[0-9]{1,6}|1)$."
  }
}

variable "scaling" {
  description = "true publishes wanted_holders, a metric by which a service of containers is scaled (infra/fargate.yaml)."
  type        = bool
  default     = false
}

variable "release" {
  description = "The version of your own code, as kept runs, charts and the list of processes name it. Empty for the number of the function's version. With Alias=live a deploy without another one changes nothing that runs."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^.{0,40}$", var.release))
    error_message = "It must match ^.{0,40}$."
  }
}

variable "history_days" {
  description = "For how many days outcomes and percentiles of times are kept by the day, 1 KB a queue and day."
  type        = number
  default     = 0
  validation {
    condition     = var.history_days >= 0 && var.history_days <= 400
    error_message = "It must be 0 to 400."
  }
}

variable "auto_shards" {
  description = "What housekeeping does for queues with shards_count = \"auto\", which is to say how many shards they need, to make them too, or nothing."
  type        = string
  default     = "propose"
  validation {
    condition     = contains(["propose", "act", "off"], var.auto_shards)
    error_message = "It must be one of propose, act, off."
  }
}

variable "tracing" {
  description = "Active records invocations in X-Ray, which is billed."
  type        = string
  default     = "PassThrough"
  validation {
    condition     = contains(["PassThrough", "Active"], var.tracing)
    error_message = "It must be one of PassThrough, Active."
  }
}

variable "alarm_topic_arn" {
  description = "The topic that alarms are sent to."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(arn:[^:]+:sns:.+)?$", var.alarm_topic_arn))
    error_message = "It must match ^(arn:[^:]+:sns:.+)?$."
  }
}

variable "oldest_due_age_alarm" {
  description = "Seconds that the oldest due job may wait before an alarm."
  type        = number
  default     = 300
  validation {
    condition     = var.oldest_due_age_alarm >= 1
    error_message = "It must be 1 or more."
  }
}

variable "logs_kms_key_arn" {
  description = "Encrypts the logs with a key of your own, whose policy lets CloudWatch Logs use it."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(arn:[^:]+:kms:.+:key/.+)?$", var.logs_kms_key_arn))
    error_message = "It must match ^(arn:[^:]+:kms:.+:key/.+)?$."
  }
}

variable "queues_kms_key_arn" {
  description = "Encrypts the stack's queues of SQS with a key of your own."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(arn:[^:]+:kms:.+:key/.+)?$", var.queues_kms_key_arn))
    error_message = "It must match ^(arn:[^:]+:kms:.+:key/.+)?$."
  }
}

variable "environment_kms_key_arn" {
  description = "Encrypts the variables of the functions with a key of your own. The one who deploys needs kms:CreateGrant, kms:Encrypt and kms:Decrypt on it."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(arn:[^:]+:kms:.+:key/.+)?$", var.environment_kms_key_arn))
    error_message = "It must match ^(arn:[^:]+:kms:.+:key/.+)?$."
  }
}

variable "permissions_boundary_arn" {
  description = "The boundary that each role gets."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(arn:[^:]+:iam::.+:policy/.+)?$", var.permissions_boundary_arn))
    error_message = "It must match ^(arn:[^:]+:iam::.+:policy/.+)?$."
  }
}

variable "access_log" {
  description = "true logs each request to the dashboard for LogRetentionDays, without its headers, query and body."
  type        = bool
  default     = true
}
