package sqs

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The attributes of a queue that can be set, and those that are only read.
const (
	delaySeconds           = "DelaySeconds"
	maximumMessageSize     = "MaximumMessageSize"
	messageRetentionPeriod = "MessageRetentionPeriod"
	receiveWaitTimeSeconds = "ReceiveMessageWaitTimeSeconds"
	visibilityTimeout      = "VisibilityTimeout"
	redrivePolicyName      = "RedrivePolicy"
	redriveAllowPolicyName = "RedriveAllowPolicy"
	sqsManagedSSEEnabled   = "SqsManagedSseEnabled"
)

// MessageBytesMax bounds one message, and the sum of one batch.
const MessageBytesMax = 1 << 20

// VisibilityMax bounds one visibility timeout, counted from the receive.
const VisibilityMax = 12 * time.Hour

// numeric lists the attributes that are whole numbers: bytes for
// MaximumMessageSize, seconds for the rest.
var numeric = map[string]struct{ from, to, unset int }{
	delaySeconds:           {0, 900, 0},
	maximumMessageSize:     {1024, MessageBytesMax, MessageBytesMax},
	messageRetentionPeriod: {60, 1_209_600, 345_600},
	receiveWaitTimeSeconds: {0, 20, 0},
	visibilityTimeout:      {0, int(VisibilityMax / time.Second), 30},
}

// refusedAttributes exist in the service and are not implemented here.
var refusedAttributes = []string{
	"Policy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds",
	"FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit",
}

var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// settings are the attributes of one queue. A settings value is not changed
// after it has been given to a queue, but replaced.
type settings struct {
	numbers map[string]int
	redrive *redrivePolicy
	allow   *redriveAllowPolicy
	sse     bool
}

func defaultSettings() settings {
	set := settings{numbers: map[string]int{}, sse: true}
	for name, limits := range numeric {
		set.numbers[name] = limits.unset
	}
	return set
}

func (set settings) duration(name string) time.Duration {
	return time.Duration(set.numbers[name]) * time.Second
}

// with returns the settings with some attributes changed.
func (set settings) with(changes map[string]string) (settings, error) {
	set.numbers = maps.Clone(set.numbers)
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if err := set.change(name, changes[name]); err != nil {
			return settings{}, err
		}
	}
	return set, nil
}

func (set *settings) change(name, value string) (err error) {
	switch {
	case name == redrivePolicyName:
		set.redrive, err = parseRedrivePolicy(value)
	case name == redriveAllowPolicyName:
		set.allow, err = parseRedriveAllowPolicy(value)
	case name == sqsManagedSSEEnabled:
		set.sse, err = strconv.ParseBool(value)
		if err != nil {
			err = invalidAttribute(name, "must be true or false")
		}
	case slices.Contains(refusedAttributes, name):
		err = unsupported("The local stack does not implement the queue attribute %s.", name)
	default:
		limits, ok := numeric[name]
		if !ok {
			return unknownAttribute(name)
		}
		n, malformed := strconv.Atoi(value)
		if malformed != nil || n < limits.from || n > limits.to {
			return invalidAttribute(name, "must be a whole number from "+strconv.Itoa(limits.from)+" to "+strconv.Itoa(limits.to))
		}
		set.numbers[name] = n
	}
	return err
}

func unknownAttribute(name string) error {
	return refuse("InvalidAttributeName", "InvalidAttributeName", "Unknown attribute %s.", name)
}

func invalidAttribute(name, reason string) error {
	return refuse("InvalidAttributeValue", "InvalidAttributeValue", "Invalid value for the parameter %s: it %s.", name, reason)
}

// attributes returns everything that GetQueueAttributes can say. The queue is settled.
func (q *queue) attributes() map[string]string {
	all := map[string]string{
		"QueueArn":                              q.arn,
		"ApproximateNumberOfMessages":           strconv.Itoa(q.ready.Len()),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(q.inFlight),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(q.waiting.Len() - q.inFlight),
		"CreatedTimestamp":                      strconv.FormatInt(q.created.Unix(), 10),
		"LastModifiedTimestamp":                 strconv.FormatInt(q.modified.Unix(), 10),
		sqsManagedSSEEnabled:                    strconv.FormatBool(q.settings.sse),
	}
	for name := range numeric {
		all[name] = strconv.Itoa(q.settings.numbers[name])
	}
	if q.settings.redrive != nil {
		all[redrivePolicyName] = q.settings.redrive.String()
	}
	if q.settings.allow != nil {
		all[redriveAllowPolicyName] = q.settings.allow.String()
	}
	return all
}

type createQueueInput struct {
	QueueName  string
	Attributes map[string]string
}

type queueURLOutput struct {
	QueueURL string `json:"QueueUrl"`
}

func (s *Server) createQueue(r *http.Request, in createQueueInput) (queueURLOutput, error) {
	none := queueURLOutput{}
	if strings.HasSuffix(in.QueueName, ".fifo") {
		return none, unsupported("The local stack has standard queues only, no FIFO queues.")
	}
	if !queueName.MatchString(in.QueueName) {
		return none, invalidParameter("QueueName must be 1 to 80 letters, digits, hyphens and underscores.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	out := queueURLOutput{QueueURL: s.url(r, in.QueueName)}
	if q, ok := s.queues[in.QueueName]; ok {
		return out, q.mustHave(in.Attributes)
	}
	arn := s.arn(in.QueueName)
	set, err := s.changedSettings(defaultSettings(), in.Attributes, arn)
	if err != nil {
		return none, err
	}
	s.queues[in.QueueName] = newQueue(in.QueueName, arn, set, s.cfg.Now())
	return out, nil
}

// mustHave refuses attributes that differ from the ones the queue has.
func (q *queue) mustHave(attributes map[string]string) error {
	wanted, err := q.settings.with(attributes)
	if err != nil {
		return err
	}
	a, b := &queue{settings: wanted}, &queue{settings: q.settings}
	if !maps.Equal(a.attributes(), b.attributes()) {
		return refuse("QueueNameExists", "QueueAlreadyExists", "A queue already exists with the same name and a different value for an attribute.")
	}
	return nil
}

// changedSettings changes the settings of the queue with that ARN, and checks
// them against the other queues. The lock is held.
func (s *Server) changedSettings(set settings, changes map[string]string, arn string) (settings, error) {
	set, err := set.with(changes)
	if err != nil {
		return settings{}, err
	}
	if _, changed := changes[redrivePolicyName]; !changed || set.redrive == nil {
		return set, nil
	}
	dead, ok := s.findARN(set.redrive.DeadLetterTargetARN)
	if !ok || dead.arn == arn {
		return settings{}, invalidAttribute(redrivePolicyName, "must name another queue that exists")
	}
	if !dead.settings.allow.permits(arn) {
		return settings{}, invalidAttribute(redrivePolicyName, "must name a dead-letter queue whose RedriveAllowPolicy permits this one")
	}
	return set, nil
}

type getQueueURLInput struct {
	QueueName string
}

func (s *Server) getQueueURL(r *http.Request, in getQueueURLInput) (queueURLOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.queues[in.QueueName]; !ok {
		return queueURLOutput{}, queueDoesNotExist()
	}
	return queueURLOutput{QueueURL: s.url(r, in.QueueName)}, nil
}

type getQueueAttributesInput struct {
	QueueURL       string `json:"QueueUrl"`
	AttributeNames []string
}

type attributesOutput struct {
	Attributes map[string]string `json:"Attributes,omitempty"`
}

func (s *Server) getQueueAttributes(_ *http.Request, in getQueueAttributesInput) (attributesOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return attributesOutput{}, err
	}
	q.settle(s.cfg.Now())

	all, picked := q.attributes(), map[string]string{}
	for _, name := range in.AttributeNames {
		if name == "All" {
			return attributesOutput{Attributes: all}, nil
		}
		value, ok := all[name]
		switch {
		case ok:
			picked[name] = value
		case name == redrivePolicyName, name == redriveAllowPolicyName, slices.Contains(refusedAttributes, name):
			// A known attribute without a value is left out, as the service does.
		default:
			return attributesOutput{}, unknownAttribute(name)
		}
	}
	return attributesOutput{Attributes: picked}, nil
}

type setQueueAttributesInput struct {
	QueueURL   string `json:"QueueUrl"`
	Attributes map[string]string
}

func (s *Server) setQueueAttributes(_ *http.Request, in setQueueAttributesInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return err
	}
	if len(in.Attributes) == 0 {
		return missingParameter("Attributes")
	}
	set, err := s.changedSettings(q.settings, in.Attributes, q.arn)
	if err != nil {
		return err
	}
	q.settings, q.modified = set, s.cfg.Now()
	q.notify() // a lower maxReceiveCount or retention changes what can be taken
	return nil
}

// purgeInterval is how long one purge keeps the next one away.
const purgeInterval = 60 * time.Second

type purgeQueueInput struct {
	QueueURL string `json:"QueueUrl"`
}

func (s *Server) purgeQueue(_ *http.Request, in purgeQueueInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return err
	}
	now := s.cfg.Now()
	if !q.purged.IsZero() && now.Sub(q.purged) < purgeInterval {
		return refuse("PurgeQueueInProgress", queryPrefix+"PurgeQueueInProgress", "Only one PurgeQueue is allowed every %d seconds.", int(purgeInterval.Seconds()))
	}
	q.purged = now
	for _, m := range q.messages {
		q.remove(m)
	}
	return nil
}

type listQueuesInput struct {
	QueueNamePrefix string
	MaxResults      *int
	NextToken       string
}

type listQueuesOutput struct {
	QueueURLs []string `json:"QueueUrls,omitempty"`
	NextToken string   `json:"NextToken,omitempty"`
}

func (s *Server) listQueues(r *http.Request, in listQueuesInput) (listQueuesOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.queues {
		if strings.HasPrefix(name, in.QueueNamePrefix) {
			names = append(names, name)
		}
	}
	urls, next, err := s.page(r, names, in.MaxResults, in.NextToken)
	return listQueuesOutput{QueueURLs: urls, NextToken: next}, err
}

// pageMax bounds one page of queue URLs, and is its size when none is asked for.
const pageMax = 1000

// page returns the URLs of one page of names in order; a token is the last name
// of the page before it. Without MaxResults there is no token, as in the service.
func (s *Server) page(r *http.Request, names []string, size *int, token string) (urls []string, next string, err error) {
	limit := pageMax
	if size != nil {
		limit = *size
	}
	if limit < 1 || limit > pageMax {
		return nil, "", outOfRange("MaxResults", 1, pageMax)
	}
	slices.Sort(names)
	for _, name := range names {
		if name <= token {
			continue
		}
		if len(urls) == limit {
			if size != nil {
				next = urls[limit-1][strings.LastIndexByte(urls[limit-1], '/')+1:]
			}
			break
		}
		urls = append(urls, s.url(r, name))
	}
	return urls, next, nil
}

// parseObject reads an attribute that is a JSON object in a string.
func parseObject(name, value string, into any) error {
	d := json.NewDecoder(strings.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return invalidAttribute(name, "must be a JSON object with the members of the policy")
	}
	return nil
}
