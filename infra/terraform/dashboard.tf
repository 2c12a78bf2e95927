# The dashboard behind an HTTP API.

resource "aws_apigatewayv2_api" "dashboard" {
  name          = "${var.name}-dashboard"
  protocol_type = "HTTP"
}

resource "aws_apigatewayv2_stage" "dashboard" {
  api_id      = aws_apigatewayv2_api.dashboard.id
  name        = "$default"
  auto_deploy = true

  # For all callers together: ten people at one moment with two open pages each, and a few long actions. A flood is held
  # at what costs some dollars a day. Tries at passwords are counted by the dashboard itself.
  default_route_settings {
    throttling_burst_limit = 100
    throttling_rate_limit  = 50
  }

  dynamic "access_log_settings" {
    for_each = var.access_log ? [1] : []
    content {
      destination_arn = aws_cloudwatch_log_group.access[0].arn
      format = join(" ", [
        "{\"time\": \"$context.requestTime\", \"request\": \"$context.requestId\", \"address\": \"$context.identity.sourceIp\",",
        "\"method\": \"$context.httpMethod\", \"path\": \"$context.path\", \"status\": \"$context.status\",",
        "\"bytes\": \"$context.responseLength\", \"milliseconds\": \"$context.responseLatency\",",
        "\"error\": \"$context.integrationErrorMessage\"}",
      ])
    }
  }
}

resource "aws_cloudwatch_log_group" "access" {
  count = var.access_log ? 1 : 0
  # Under this prefix the resource policy of logs does not grow with each group.
  name              = "/aws/vendedlogs/${var.name}-dashboard"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.logs_kms_key_arn == "" ? null : var.logs_kms_key_arn
}

resource "aws_apigatewayv2_integration" "dashboard" {
  api_id                 = aws_apigatewayv2_api.dashboard.id
  integration_type       = "AWS_PROXY"
  integration_uri        = local.target["dashboard"]
  payload_format_version = "2.0"
}

resource "aws_apigatewayv2_route" "dashboard" {
  api_id    = aws_apigatewayv2_api.dashboard.id
  route_key = "$default"
  # With NONE the function asks for a password or a token itself.
  authorization_type = lookup({ jwt = "JWT", iam = "AWS_IAM" }, var.dashboard_claims, "NONE")
  authorizer_id      = one(aws_apigatewayv2_authorizer.dashboard[*].id)
  target             = "integrations/${aws_apigatewayv2_integration.dashboard.id}"
}

resource "aws_apigatewayv2_authorizer" "dashboard" {
  count            = var.dashboard_claims == "jwt" ? 1 : 0
  api_id           = aws_apigatewayv2_api.dashboard.id
  name             = "jwt"
  authorizer_type  = "JWT"
  identity_sources = ["$request.header.Authorization"]

  jwt_configuration {
    issuer   = var.dashboard_jwt_issuer
    audience = split(",", var.dashboard_jwt_audience)
  }
}

resource "aws_lambda_permission" "dashboard" {
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.function["dashboard"].function_name
  qualifier     = local.starts_versions ? aws_lambda_alias.live["dashboard"].name : null
  principal     = "apigateway.amazonaws.com"
  source_arn    = "arn:${local.partition}:execute-api:${local.place}:${aws_apigatewayv2_api.dashboard.id}/*"
}
