"""What there is in the cloud: the same before a stack and after it."""

from typing import Any

from tests.kit.servers import LocalCloud


def inventory(cloud: LocalCloud) -> dict[str, set[str]]:
    """All that there is in the cloud, of the kinds that a stack may make, by its name."""
    asked = (
        ("cloudformation", "list_stacks", "StackSummaries", "StackName"),
        ("lambda", "list_functions", "Functions", "FunctionName"),
        ("lambda", "list_event_source_mappings", "EventSourceMappings", "UUID"),
        ("events", "list_rules", "Rules", "Name"),
        ("scheduler", "list_schedules", "Schedules", "Name"),
        ("scheduler", "list_schedule_groups", "ScheduleGroups", "Name"),
        ("apigatewayv2", "get_apis", "Items", "ApiId"),
        ("iam", "list_roles", "Roles", "RoleName"),
        ("iam", "list_policies", "Policies", "PolicyName"),
        ("logs", "describe_log_groups", "logGroups", "logGroupName"),
        ("sqs", "list_queues", "QueueUrls", None),
        ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
        ("s3", "list_buckets", "Buckets", "Name"),
        ("secretsmanager", "list_secrets", "SecretList", "Name"),
    )
    found = {}
    for service, call, listed, name in asked:
        answer = getattr(cloud.client(service), call)()
        items = [item for item in answer.get(listed, []) if not _is_deleted(item)]
        found[f"{service} {listed}"] = {item if name is None else item[name] for item in items}
    return found


def _is_deleted(item: Any) -> bool:
    """Stacks go on being listed."""
    return isinstance(item, dict) and item.get("StackStatus") == "DELETE_COMPLETE"
