# The drain function as an image, with the app of this folder, for those who deploy images and not zip files:
#   docker build --file docker/lambda.Dockerfile --tag shop-drain .
# Lambda runs it as a user without rights. The dashboard is the same image with another command:
#   lowkiq_lambda.aws.dashboard_function.handler
ARG PYTHON=3.13
FROM public.ecr.aws/lambda/python:${PYTHON}
COPY dist* app/requirements.txt /wheels/
RUN pip install --no-cache-dir --disable-pip-version-check --find-links /wheels \
    "lowkiq-lambda[lambda]" --requirement /wheels/requirements.txt
COPY app ${LAMBDA_TASK_ROOT}/app
RUN python -m compileall -q "${LAMBDA_TASK_ROOT}"
ENV LOWKIQ_APP=app.jobs:app
CMD ["lowkiq_lambda.aws.drain_function.handler"]
