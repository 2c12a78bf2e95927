"""Sets of parameters that have each parameter other than its default once, and what the template makes of them."""

from collections.abc import Mapping
from typing import Any, Final

from lint.reference.terraform import kind_of, variable_of

_KEY: Final = "arn:aws:kms:eu-west-1:123456789012:key/"
_STORED: Final = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:"
_HASH: Final = "scrypt:16384:c2FsdA==:aGFzaA=="

STACKS: Final[Mapping[str, Mapping[str, str]]] = {
    "default": {"RedisUrl": "redis://redis.example:6379"},
    "network_and_secrets": {
        "AppModule": "shop.jobs:app",
        "Alias": "live",
        "Release": "2026.12",
        "RedisSecretArn": f"{_STORED}redis-AbCdEf",
        "SecretsKmsKeyArn": f"{_KEY}secrets",
        "SubnetIds": "subnet-1,subnet-2",
        "SecurityGroupIds": "sg-1,sg-2",
        "DualStack": "true",
        "Runtime": "python3.12",
        "Architecture": "x86_64",
        "SnapStart": "true",
        "MemorySize": "512",
        "Tracing": "Active",
        "LogsKmsKeyArn": f"{_KEY}logs",
        "QueuesKmsKeyArn": f"{_KEY}queues",
        "EnvironmentKmsKeyArn": f"{_KEY}environment",
        "PermissionsBoundaryArn": "arn:aws:iam::123456789012:policy/boundary",
        "DashboardSecretArn": f"{_STORED}dashboard-AbCdEf",
        "DashboardAccounts": f"olga:operator:{_HASH}",
        "DashboardReaderPassword": _HASH,
        "DashboardTokens": f"prometheus:reader:sha256:{'0' * 64}",
        "DashboardBasePath": "/jobs",
        "DashboardConcurrency": "4",
        "WakeOnPush": "true",
        "Inbox": "standard",
        "InboxAgeAlarm": "120",
        "MessageBatchSize": "20",
        "MessageBatchingWindow": "5",
    },
    "ways_in": {
        "RedisUrl": "rediss://cache.example:6379",
        "RedisIamUser": "lowkiq",
        "RedisIamCache": "jobs",
        "RedisIamServerless": "true",
        "SubnetIds": "subnet-1",
        "SecurityGroupIds": "sg-1",
        "Namespace": "shop",
        "Idle": "punctual",
        "ShardSchedules": "false",
        "ScheduleExpression": "rate(5 minutes)",
        "DrainConcurrency": "3",
        "DrainTimeout": "600",
        "BurstAfter": "10",
        "Scaling": "true",
        "DrainReserve": "5",
        "OtherQueues": "Reports,Exports",
        "QueueSchedules": "SyncOrder,sync_user",
        "Inbox": "fifo",
        "InboxReceives": "7",
        "IngestConcurrency": "9",
        "IngestQueueArn": "arn:aws:sqs:eu-west-1:123456789012:orders",
        "MessageFilter": '{"body": {"kind": ["order"]}}',
        "MessageConcurrency": "8",
        "IngestStreamArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2026-11-27T00:00:00.000",
        "StreamBatchSize": "50",
        "StreamBatchingWindow": "2",
        "StreamConcurrency": "4",
        "StreamFilter": '{"eventName": ["INSERT"]}',
        "StreamRetries": "5",
        "StreamBisect": "true",
        "StreamRecordAge": "3600",
        "IngestEventSources": "shop.orders,shop.returns",
        "IngestEventTypes": "OrderPlaced",
        "IngestEventBus": "shop",
        "IngestBuckets": "shop-uploads",
        "IngestBucketEvents": "Object Created,Object Deleted",
        "DashboardClaims": "jwt",
        "DashboardJwtIssuer": "https://issuer.example",
        "DashboardJwtAudience": "dashboard,reports",
        "DashboardOperators": "cognito:groups=operators",
        "DashboardReaders": "cognito:groups=readers",
        "AlarmTopicArn": "arn:aws:sns:eu-west-1:123456789012:alarms",
        "OldestDueAgeAlarm": "60",
        "BlockedAlarm": "true",
        "ScheduleAlarm": "true",
        "VerifyShare": "0.01",
        "Metrics": "queues",
        "MetricsNamespace": "shop/jobs",
        "HistoryDays": "35",
        "AutoShards": "act",
        "Release": "2026.11",
    },
    "quiet": {
        "RedisUrl": "redis://redis.example:6379",
        "RedisIamUser": "lowkiq",
        "RedisIamCache": "jobs",
        "RedisIamService": "memorydb",
        "SubnetIds": "subnet-1",
        "SecurityGroupIds": "sg-1",
        "ScheduleState": "DISABLED",
        "ShardIndexes": "0,1,2,3,4,5,6,7",
        "QueueSchedules": "SyncOrder",
        "Metrics": "none",
        "LogLevel": "DEBUG",
        "LogRetentionDays": "7",
        "AccessLog": "false",
        "DashboardClaims": "iam",
        "DashboardReaders": "accountId=123456789012",
        "IngestBuckets": "shop-uploads",
    },
    "one_schedule": {
        "RedisUrl": "redis://redis.example:6379",
        "ShardSchedules": "false",
        "Idle": "start",
        "IngestEventSources": "shop.orders",
        "Alias": "live",
        "Release": "17",
    },
}


def variables(template: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """The parameters as variables of the Terraform module."""
    return {
        variable_of(name): _variable(kind_of(name, template["Parameters"][name]), text) for name, text in given.items()
    }


def _variable(kind: str, text: str) -> Any:
    if kind == "list(string)":
        return text.split(",") if text else []
    return text == "true" if kind == "bool" else text
