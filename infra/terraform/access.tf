# Roles and what they allow; drain_role_name is the output to which policies for your handlers are attached.

locals {
  # Prefixes of names have 38 letters at most; and roles of one name may be in several regions.
  prefix = substr(var.name, 0, 25)

  queue_key_statement = {
    Sid      = "UseTheKeyOfQueues"
    Effect   = "Allow"
    Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
    Resource = var.queues_kms_key_arn
  }

  network_actions = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
  ]

  cache = (
    var.redis_iam_service == "memorydb" ? "memorydb:${local.place}:cluster/" :
    var.redis_iam_serverless ? "elasticache:${local.place}:serverlesscache:" : "elasticache:${local.place}:replicationgroup:"
  )
  cache_user = var.redis_iam_service == "memorydb" ? "memorydb:${local.place}:user/" : "elasticache:${local.place}:user:"

  access_statements = [for statement in [
    var.redis_secret_arn == "" ? null : {
      Sid      = "ReadTheUrl"
      Effect   = "Allow"
      Action   = "secretsmanager:GetSecretValue"
      Resource = var.redis_secret_arn
    },
    var.secrets_kms_key_arn == "" ? null : {
      Sid       = "DecryptSecrets"
      Effect    = "Allow"
      Action    = "kms:Decrypt"
      Resource  = var.secrets_kms_key_arn
      Condition = { StringEquals = { "kms:ViaService" = "secretsmanager.${local.via}" } }
    },
    !local.has_queue_key ? null : merge(local.queue_key_statement, {
      Condition = { StringEquals = { "kms:ViaService" = "sqs.${local.via}" } }
    }),
    !local.uses_iam ? null : {
      Sid    = "SignIn"
      Effect = "Allow"
      Action = var.redis_iam_service == "memorydb" ? "memorydb:Connect" : "elasticache:Connect"
      Resource = [
        "arn:${local.partition}:${local.cache}${var.redis_iam_cache}",
        "arn:${local.partition}:${local.cache_user}${var.redis_iam_user}",
      ]
    },
    # Lambda does this as the function; interfaces have no names to limit it to before they are there.
    !local.in_vpc ? null : {
      Sid      = "EnterTheVpc"
      Effect   = "Allow"
      Action   = local.network_actions
      Resource = "*"
    },
    # Lambda as the function, and not the function's own code.
    !local.in_vpc ? null : {
      Sid       = "LeaveTheVpcAlone"
      Effect    = "Deny"
      Action    = sort(concat(local.network_actions, ["ec2:DetachNetworkInterface"]))
      Resource  = "*"
      Condition = { ArnLike = { "lambda:SourceFunctionArn" = "${local.function}-*" } }
    },
    # X-Ray knows no resource for these two.
    var.tracing != "Active" ? null : {
      Sid      = "Trace"
      Effect   = "Allow"
      Action   = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]
      Resource = "*"
    },
  ] : statement if statement != null]
  via = "${data.aws_region.current.region}.${data.aws_partition.current.dns_suffix}"

  tell_of_failures = {
    Sid      = "TellOfFailedEvents"
    Effect   = "Allow"
    Action   = "sqs:SendMessage"
    Resource = aws_sqs_queue.failure.arn
  }

  statements = {
    drain = [
      local.tell_of_failures,
      local.starts_drains || var.wake_on_push ? {
        Sid      = "StartDrains"
        Effect   = "Allow"
        Action   = "lambda:InvokeFunction"
        Resource = "${local.function}-drain${local.qualifier}"
      } : null,
    ]
    dashboard = [
      var.dashboard_secret_arn == "" ? null : {
        Sid      = "ReadThePassword"
        Effect   = "Allow"
        Action   = "secretsmanager:GetSecretValue"
        Resource = var.dashboard_secret_arn
      },
    ]
    ingest = [
      local.tell_of_failures,
      !local.has_inbox ? null : {
        Sid      = "TakeFromTheInbox"
        Effect   = "Allow"
        Action   = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
        Resource = aws_sqs_queue.inbox[0].arn
      },
      var.ingest_queue_arn == "" ? null : {
        Sid      = "TakeFromTheQueue"
        Effect   = "Allow"
        Action   = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
        Resource = var.ingest_queue_arn
      },
      var.ingest_stream_arn == "" ? null : {
        Sid      = "ReadTheStream"
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
        Resource = var.ingest_stream_arn
      },
      var.ingest_stream_arn == "" ? null : {
        Sid      = "FindTheStream"
        Effect   = "Allow"
        Action   = "dynamodb:ListStreams"
        Resource = "${split("/stream/", var.ingest_stream_arn)[0]}/stream/*"
      },
      !var.wake_on_push ? null : {
        Sid      = "StartDrains"
        Effect   = "Allow"
        Action   = "lambda:InvokeFunction"
        Resource = "${local.function}-drain${local.qualifier}"
      },
    ]
  }
}

resource "aws_iam_role" "function" {
  for_each             = local.functions
  name_prefix          = "${local.prefix}-${each.key}-"
  permissions_boundary = var.permissions_boundary_arn == "" ? null : var.permissions_boundary_arn
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "function" {
  for_each = local.functions
  name     = each.key
  role     = aws_iam_role.function[each.key].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [for statement in concat([{
      Sid      = "Log"
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
      Resource = "${aws_cloudwatch_log_group.function[each.key].arn}:*"
    }], local.statements[each.key]) : statement if statement != null]
  })
}

resource "aws_iam_policy" "access" {
  count       = local.has_access ? 1 : 0
  name_prefix = "${local.prefix}-access-"
  description = "What the functions of a lowkiq_lambda app need to reach Redis."
  policy      = jsonencode({ Version = "2012-10-17", Statement = local.access_statements })
}

resource "aws_iam_role_policy_attachment" "access" {
  for_each   = { for name in keys(local.functions) : name => name if local.has_access }
  role       = aws_iam_role.function[each.key].name
  policy_arn = aws_iam_policy.access[0].arn
}

resource "aws_iam_role" "scheduler" {
  name_prefix          = "${local.prefix}-scheduler-"
  permissions_boundary = var.permissions_boundary_arn == "" ? null : var.permissions_boundary_arn
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      # Not to the schedules of this stack alone: `lowkiq stack schedules` keeps its own in a group of its own.
      Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "scheduler" {
  name = "schedules"
  role = aws_iam_role.scheduler.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "StartDrains"
          Effect   = "Allow"
          Action   = "lambda:InvokeFunction"
          Resource = local.target["drain"]
        },
        {
          Sid      = "TellOfLostEvents"
          Effect   = "Allow"
          Action   = "sqs:SendMessage"
          Resource = aws_sqs_queue.failure.arn
        },
      ],
      local.has_queue_key ? [local.queue_key_statement] : []
    )
  })
}
