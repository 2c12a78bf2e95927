"""Tests of the stack by other means than CloudFormation: the Terraform module and the construct of CDK."""
