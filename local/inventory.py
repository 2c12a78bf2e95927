"""What there is in a cloud, of the kinds that a stack makes: the same before a stack and after it."""

from typing import Any, Final

from lowkiq_lambda.stack.cloud.access import CloudAccess

LOGS: Final = "logs logGroups"


def inventory(cloud: CloudAccess, part: str = "") -> dict[str, set[str]]:
    """All that there is, of the kinds that a stack may make, by its name; or what has `part` in its name."""
    kinds = (
        ("cloudformation", "list_stacks", "StackSummaries", "StackName"),
        ("lambda", "list_functions", "Functions", "FunctionName"),
        ("lambda", "list_event_source_mappings", "EventSourceMappings", "FunctionArn"),
        ("events", "list_rules", "Rules", "Name"),
        ("scheduler", "list_schedules", "Schedules", "Arn"),
        ("scheduler", "list_schedule_groups", "ScheduleGroups", "Name"),
        ("apigatewayv2", "get_apis", "Items", "Name"),
        ("iam", "list_roles", "Roles", "RoleName"),
        ("iam", "list_policies", "Policies", "PolicyName"),
        ("logs", "describe_log_groups", "logGroups", "logGroupName"),
        ("sqs", "list_queues", "QueueUrls", None),
        ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
        ("s3", "list_buckets", "Buckets", "Name"),
        ("secretsmanager", "list_secrets", "SecretList", "Name"),
    )
    names = {}
    for service, call, listed, name in kinds:
        client = cloud.client(service)
        pages = client.get_paginator(call).paginate() if client.can_paginate(call) else [getattr(client, call)()]
        items = [item for page in pages for item in page.get(listed, []) if not _is_deleted(item)]
        every = {item if name is None else item[name] for item in items}
        names[f"{service} {listed}"] = {one for one in every if part in one}
    return names


def _is_deleted(item: Any) -> bool:  # noqa: ANN401 - of any kind
    """Stacks go on being listed."""
    return isinstance(item, dict) and item.get("StackStatus") == "DELETE_COMPLETE"
