package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/smithy-go"

	"dakghar/internal/operator"
)

// localURL is where the local stack's AWS services are, unless told otherwise.
const localURL = "http://127.0.0.1:8081"

// target is the stack that a command works on.
type target struct {
	local         bool
	localURL      string
	stack, region string
}

func (t target) check() error {
	misuse := func(problem string) error {
		return &operator.Refusal{Code: "usage", Usage: true, Problem: problem}
	}
	switch {
	case t.local && t.stack != "":
		return misuse("--local and --stack are two stacks: choose one")
	case !t.local && t.stack == "":
		return misuse(`say which stack: --local for the one that "dakghar dev" runs, or --stack NAME for a deployed one`)
	case t.local && t.region != "":
		return misuse("--region goes with --stack: the local stack has none to choose")
	case !t.local && t.localURL != "":
		return misuse("--local-url goes with --local")
	}
	return nil
}

// flags returns what chooses this stack again.
func (t target) flags() []string {
	var flags []string
	if t.local {
		flags = append(flags, "--local")
	}
	if t.localURL != "" {
		flags = append(flags, "--local-url", t.localURL)
	}
	if t.stack != "" {
		flags = append(flags, "--stack", t.stack)
	}
	if t.region != "" {
		flags = append(flags, "--region", t.region)
	}
	return flags
}

// stack is what a command must know of a running stack.
type stack struct {
	frontDoor string
	// env has the functions' own settings: INBOX_TABLE and so on.
	env   map[string]string
	aws   aws.Config
	local bool
	// providerAPI stands in for the providers' APIs, on the local stack alone.
	providerAPI string
}

// setting returns one of the functions' settings, those that the local stack adds too.
func (s stack) setting(name string) string {
	switch {
	case s.local && name == "AWS_ENDPOINT_URL":
		return aws.ToString(s.aws.BaseEndpoint)
	case s.local && name == "PROVIDER_API_BASE":
		return s.providerAPI
	}
	return s.env[name]
}

// find asks the stack where its parts are.
func (t target) find(ctx context.Context, getenv func(string) string) (stack, error) {
	if t.local {
		for _, address := range []string{t.localURL, getenv("DAKGHAR_LOCAL_URL"), localURL} {
			if address != "" {
				return findLocal(ctx, strings.TrimRight(address, "/"))
			}
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx) // the caller's own profiles, files and single sign-on
	if err != nil {
		return stack{}, &operator.Refusal{
			Code: "aws_configuration", Problem: "your AWS configuration cannot be read", Err: err,
			Next: []operator.Step{{Text: "check AWS_PROFILE and the files in ~/.aws"}},
		}
	}
	if t.region != "" {
		cfg.Region = t.region
	}
	return findDeployed(ctx, cfg, t.stack)
}

// description is what the local stack says about itself.
type description struct {
	FrontDoor string            `json:"frontDoor"`
	AWS       string            `json:"aws"`
	Region    string            `json:"region"`
	Outputs   map[string]string `json:"outputs"`
	Providers string            `json:"providerAPI"`
}

// callMax bounds one call to the local services, which answer from the same machine
// unless somebody stalls them.
const callMax = 10 * time.Second

// findLocalMax bounds the question; the answer comes from the same machine.
const findLocalMax = 3 * time.Second

// findLocal asks the local stack. The configuration reads no environment and no
// file: a person's credentials never meet the local stack, and a call meant for
// it never leaves the machine.
func findLocal(ctx context.Context, address string) (stack, error) {
	ctx, cancel := context.WithTimeout(ctx, findLocalMax)
	defer cancel()
	d, err := describe(ctx, address)
	if err != nil {
		return stack{}, &operator.Refusal{
			Code: "stack_unreachable", Problem: "no local stack answers at " + address, Err: err,
			Next: []operator.Step{
				{Text: "start one in another shell: make run"},
				{Text: "or say where it is: the address that dakghar dev had with --aws goes into DAKGHAR_LOCAL_URL, or behind --local-url"},
			},
		}
	}
	return stack{
		frontDoor: d.FrontDoor, env: settings(d.Outputs), local: true, providerAPI: d.Providers,
		aws: aws.Config{
			Region: d.Region, BaseEndpoint: &d.AWS, HTTPClient: awshttp.NewBuildableClient().WithTimeout(callMax),
			Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		},
	}, nil
}

func describe(ctx context.Context, address string) (description, error) {
	var d description
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/_dakghar/stack", nil)
	if err != nil {
		return d, plain(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return d, plain(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return d, fmt.Errorf("it answers %s", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil || d.FrontDoor == "" || d.AWS == "" {
		return d, errors.New("what answers there is no local stack")
	}
	return d, nil
}

// settings are the functions' own settings, told by the template's outputs.
func settings(outputs map[string]string) map[string]string {
	env := map[string]string{}
	for name, output := range map[string]string{
		"INBOX_TABLE": "InboxTableName", "OUTBOX_TABLE": "OutboxTableName", "BODY_TABLE": "BodyTableName",
		"BUSINESS_TABLE": "BusinessTableName", "REGISTRY_TABLE": "RegistryTableName", "DELIVERY_TABLE": "DeliveryTableName",
		"BODY_BUCKET": "BodyBucketName", "DATA_KEY_ID": "DataKeyArn", "SECRET_PREFIX": "SecretPrefix", "SUBSCRIPTION_SECRET_PREFIX": "SubscriptionSecretPrefix", "INBOX_DAYS": "InboxDays",
		"BODY_DAYS": "BodyDays", "BODY_INLINE_BYTES": "BodyInlineBytes",
		"EVENT_DEAD_LETTERS_URL": "EventDeadLettersUrl", "RELAY_FAILURES_URL": "RelayFailuresUrl",
		"EVENT_QUEUE_URL": "EventQueueUrl", "DELIVERY_QUEUE_URL": "DeliveryQueueUrl", "DELIVERY_DEAD_LETTERS_URL": "DeliveryDeadLettersUrl",
	} {
		env[name] = outputs[output]
	}
	return env
}

// findDeployed reads the outputs of a CloudFormation stack.
func findDeployed(ctx context.Context, cfg aws.Config, name string) (stack, error) {
	out, err := cloudformation.NewFromConfig(cfg).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return stack{}, notFound(cfg, name, err)
	}
	outputs := map[string]string{}
	for _, found := range out.Stacks {
		for _, o := range found.Outputs {
			outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
		}
	}
	door := strings.TrimRight(outputs["FrontDoorUrl"], "/")
	if door == "" {
		return stack{}, &operator.Refusal{
			Code: "stack_foreign", Problem: "stack " + name + " has no output FrontDoorUrl: it is not one of Dakghar's, or its deployment has not finished",
		}
	}
	return stack{frontDoor: door, env: settings(outputs), aws: cfg}, nil
}

func notFound(cfg aws.Config, name string, err error) error {
	where := "in region " + cfg.Region
	if cfg.Region == "" {
		where = "without a region"
	}
	r := &operator.Refusal{Code: "stack_unreachable", Problem: "stack " + name + " cannot be described " + where, Err: err}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		r.Err = fmt.Errorf("%s: %s", api.ErrorCode(), api.ErrorMessage())
	}
	r.Next = []operator.Step{
		{Text: "check the name and the region (--region), and your credentials: aws sts get-caller-identity"},
		{Text: "deploy it first, if it is not there: sam deploy --stack-name " + name},
	}
	return r
}
