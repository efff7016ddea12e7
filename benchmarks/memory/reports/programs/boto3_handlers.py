"""A session for each request registers handlers with the botocore session that all share."""

import boto3
import botocore.session

shared = botocore.session.Session()


def tick(number):
    boto3.Session(region_name="us-west-2", botocore_session=shared)


PER_SECOND = 60
