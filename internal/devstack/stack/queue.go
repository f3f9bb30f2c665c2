package stack

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const typeQueue = "AWS::SQS::Queue"

type queueProperties struct {
	QueueName                                                                text
	DelaySeconds, MaximumMessageSize, MessageRetentionPeriod                 *number
	ReceiveMessageWaitTimeSeconds, VisibilityTimeout                         *number
	RedrivePolicy                                                            *redrivePolicy
	SqsManagedSseEnabled, KmsMasterKeyId, KmsDataKeyReusePeriodSeconds, Tags ignored // nothing rests: it is memory
	RedriveAllowPolicy                                                       ignored // only the policies of roles are checked
}

type redrivePolicy struct {
	DeadLetterTargetArn text   `json:"deadLetterTargetArn"`
	MaxReceiveCount     number `json:"maxReceiveCount"`
}

func (c *creation) makeQueue(ctx context.Context, id string, properties any) (Resource, error) {
	var p queueProperties
	if err := decode(properties, &p); err != nil {
		return Resource{}, err
	}
	attributes, err := p.attributes()
	if err != nil {
		return Resource{}, err
	}
	name := c.physicalName(p.QueueName, id)
	created, err := c.options.Clients.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		return Resource{}, err
	}
	got, err := c.options.Clients.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: created.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return Resource{}, err
	}
	arn := got.Attributes[string(types.QueueAttributeNameQueueArn)]
	return Resource{Ref: *created.QueueUrl, Attributes: map[string]string{"Arn": arn, "QueueName": name, "QueueUrl": *created.QueueUrl}}, nil
}

func (p *queueProperties) attributes() (map[string]string, error) {
	out := map[string]string{}
	for name, value := range map[types.QueueAttributeName]*number{
		types.QueueAttributeNameDelaySeconds:                  p.DelaySeconds,
		types.QueueAttributeNameMaximumMessageSize:            p.MaximumMessageSize,
		types.QueueAttributeNameMessageRetentionPeriod:        p.MessageRetentionPeriod,
		types.QueueAttributeNameReceiveMessageWaitTimeSeconds: p.ReceiveMessageWaitTimeSeconds,
		types.QueueAttributeNameVisibilityTimeout:             p.VisibilityTimeout,
	} {
		if value != nil {
			out[string(name)] = strconv.Itoa(int(*value))
		}
	}
	if p.RedrivePolicy != nil {
		policy, err := json.Marshal(p.RedrivePolicy)
		if err != nil {
			return nil, err
		}
		out[string(types.QueueAttributeNameRedrivePolicy)] = string(policy)
	}
	return out, nil
}
