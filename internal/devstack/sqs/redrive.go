package sqs

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

// receiveCountMax bounds maxReceiveCount.
const receiveCountMax = 1000

// redrivePolicy sends a message to another queue when it has been received often enough.
type redrivePolicy struct {
	DeadLetterTargetARN string       `json:"deadLetterTargetArn"`
	MaxReceiveCount     wholeNumeric `json:"maxReceiveCount"`
}

// wholeNumeric is a whole number that may be written as a string, as the service allows.
type wholeNumeric int

func (n *wholeNumeric) UnmarshalJSON(b []byte) error {
	if len(b) > 1 && b[0] == '"' {
		b = b[1 : len(b)-1]
	}
	v, err := strconv.Atoi(string(b))
	*n = wholeNumeric(v)
	return err
}

// parseRedrivePolicy reads the attribute; an empty value removes the policy.
func parseRedrivePolicy(value string) (*redrivePolicy, error) {
	if value == "" {
		return nil, nil
	}
	p := &redrivePolicy{}
	if err := parseObject(redrivePolicyName, value, p); err != nil {
		return nil, err
	}
	if p.MaxReceiveCount < 1 || p.MaxReceiveCount > receiveCountMax {
		return nil, invalidAttribute(redrivePolicyName, "must have a maxReceiveCount from 1 to "+strconv.Itoa(receiveCountMax))
	}
	return p, nil
}

func (p *redrivePolicy) String() string { return mustJSON(p) }

// redriveAllowPolicy says which queues may name this one as their dead-letter queue.
type redriveAllowPolicy struct {
	Permission string   `json:"redrivePermission"`
	Sources    []string `json:"sourceQueueArns,omitempty"`
}

const allowSourcesMax = 10

func parseRedriveAllowPolicy(value string) (*redriveAllowPolicy, error) {
	if value == "" {
		return nil, nil
	}
	p := &redriveAllowPolicy{}
	if err := parseObject(redriveAllowPolicyName, value, p); err != nil {
		return nil, err
	}
	byQueue := p.Permission == "byQueue"
	switch {
	case !byQueue && p.Permission != "allowAll" && p.Permission != "denyAll":
		return nil, invalidAttribute(redriveAllowPolicyName, "must have a redrivePermission of allowAll, denyAll or byQueue")
	case byQueue != (len(p.Sources) > 0) || len(p.Sources) > allowSourcesMax:
		return nil, invalidAttribute(redriveAllowPolicyName, "must have 1 to 10 sourceQueueArns with byQueue, and none otherwise")
	}
	return p, nil
}

func (p *redriveAllowPolicy) String() string { return mustJSON(p) }

func (p *redriveAllowPolicy) permits(source string) bool {
	return p == nil || p.Permission == "allowAll" || slices.Contains(p.Sources, source)
}

// mustJSON marshals a policy, which holds only strings and a number.
func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("sqs: a policy cannot be marshalled: " + err.Error())
	}
	return string(b)
}

// bury moves a message that was received too often to the dead-letter queue. It
// keeps its id, its age and its count. The lock is held.
func (s *Server) bury(q *queue, m *message) {
	dead, ok := s.findARN(q.settings.redrive.DeadLetterTargetARN)
	if !ok {
		panic("sqs: a dead-letter queue vanished; queues are never deleted")
	}
	now := s.cfg.Now()
	q.remove(m)
	m.source, m.visibleAt = q.arn, now
	dead.add(m, now)
}

type listDeadLetterSourceQueuesInput struct {
	QueueURL   string `json:"QueueUrl"`
	MaxResults *int
	NextToken  string
}

// deadLetterSources spells its first member small, as the service does.
type deadLetterSources struct {
	QueueURLs []string `json:"queueUrls"`
	NextToken string   `json:"NextToken,omitempty"`
}

func (s *Server) listDeadLetterSourceQueues(r *http.Request, in listDeadLetterSourceQueuesInput) (deadLetterSources, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dead, err := s.find(in.QueueURL)
	if err != nil {
		return deadLetterSources{}, err
	}
	urls, next, err := s.page(r, s.sourcesOf(dead), in.MaxResults, in.NextToken)
	if urls == nil {
		urls = []string{}
	}
	return deadLetterSources{QueueURLs: urls, NextToken: next}, err
}

// sourcesOf names the queues whose dead letters go to this one. The lock is held.
func (s *Server) sourcesOf(dead *queue) []string {
	var names []string
	for name, q := range s.queues {
		if q.settings.redrive != nil && q.settings.redrive.DeadLetterTargetARN == dead.arn {
			names = append(names, name)
		}
	}
	return names
}
