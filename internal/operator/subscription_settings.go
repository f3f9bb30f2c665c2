package operator

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// SubscriptionSettings are a subscription's settings that may change during its
// life. A nil field stays as it is.
type SubscriptionSettings struct {
	// Target is where it goes; its hosts for redirects are in RedirectHosts.
	Target        *delivery.Target
	RedirectHosts []string // empty and not nil: none
	Types         []string // empty and not nil: all
	// Filter and Header are laid over what the subscription has; an empty text takes
	// one away.
	Filter, Header map[string]string
	Calls          *bool
	Profile        *string
	// CredentialHeader carries Credential; empty and not nil: none.
	CredentialHeader         *string
	Credential               Secret // empty leaves the one that is there
	Rate, Burst, Concurrency *int
}

// Bounds of a subscription's settings.
const (
	SubscriptionTypesMax       = 50
	SubscriptionTypeBytesMax   = 128
	SubscriptionFiltersMax     = 10
	SubscriptionFilterBytesMax = 256
	RedirectHostsMax           = 10
	SubscriptionRateMax        = 10_000 // attempts a second
	ConcurrencyMax             = 1_000
)

// over returns a subscription with the settings laid over its own.
func (n SubscriptionSettings) over(s delivery.Subscription, prefix string) delivery.Subscription {
	if n.Target != nil {
		hosts := s.Target.RedirectHosts
		s.Target = *n.Target
		s.Target.RedirectHosts = hosts
	}
	if n.RedirectHosts != nil {
		s.Target.RedirectHosts = orNil(n.RedirectHosts)
	}
	if n.Types != nil {
		s.Types = orNil(n.Types)
		if s.Types == nil && !s.Calls {
			s.Types = []string{"*"}
		}
	}
	s.Filter = laidOver(s.Filter, n.Filter, "")
	s.Header = laidOver(s.Header, n.Header, "")
	set(&s.Calls, n.Calls)
	set(&s.ProfileName, n.Profile)
	set(&s.Rate, n.Rate)
	set(&s.Burst, n.Burst)
	set(&s.Concurrency, n.Concurrency)
	set(&s.CredentialHeader, n.CredentialHeader)
	if n.CredentialHeader != nil && *n.CredentialHeader == "" {
		s.Credential = ""
	}
	if !n.Credential.Empty() {
		s.Credential = credentialName(prefix, s.ID)
	}
	return s
}

func orNil(texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	return slices.Clone(texts)
}

func sameSettings(a, b delivery.Subscription) bool {
	return a.Target.Kind == b.Target.Kind && a.Target.URL == b.Target.URL && a.Target.Bus == b.Target.Bus &&
		slices.Equal(a.Target.RedirectHosts, b.Target.RedirectHosts) && slices.Equal(a.Types, b.Types) &&
		maps.Equal(a.Filter, b.Filter) && maps.Equal(a.Header, b.Header) && a.Calls == b.Calls && a.ProfileName == b.ProfileName &&
		a.CredentialHeader == b.CredentialHeader && a.Credential == b.Credential &&
		a.Rate == b.Rate && a.Burst == b.Burst && a.Concurrency == b.Concurrency
}

var (
	typePattern = regexp.MustCompile(`^[A-Za-z0-9_*-]+(\.[A-Za-z0-9_*-]+)*$`)
	filterPath  = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
)

// subscriptionProblems returns everything that is wrong with a subscription's settings.
func (o *Operator) subscriptionProblems(s delivery.Subscription, credential Secret) []string {
	var problems []string
	wrong := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	if problem := o.targetProblem(s.Target); problem != "" {
		problems = append(problems, problem)
	}
	if _, known := delivery.ProfileNamed(s.ProfileName); !known {
		problems = append(problems, fmt.Sprintf("--profile %q is none of %s", s.ProfileName, strings.Join(profileNames(), ", ")))
	}
	wrong(s.Calls && (len(s.Types) > 0 || len(s.Filter) > 0), "--calls goes without --type and --filter: an address of calls is named by whoever calls it")
	wrong(len(s.Types) > SubscriptionTypesMax, "--type is given at most %d times", SubscriptionTypesMax)
	for _, t := range s.Types {
		wrong(len(t) > SubscriptionTypeBytesMax || !typePattern.MatchString(t), "--type %q is no pattern of a type: payment.succeeded, payment.* or *", t)
	}
	wrong(len(s.Filter) > SubscriptionFiltersMax, "--filter is given at most %d times", SubscriptionFiltersMax)
	for _, at := range slices.Sorted(maps.Keys(s.Filter)) {
		wrong(len(at) > SubscriptionFilterBytesMax || !filterPath.MatchString(at) || len(s.Filter[at]) > SubscriptionFilterBytesMax,
			"--filter %q is no path of member names joined by dots, with a text of at most %d bytes: object.currency=EUR", at, SubscriptionFilterBytesMax)
	}
	wrong(s.Rate < 0 || s.Rate > SubscriptionRateMax, "--rate is 0 (no limit) to %d attempts a second", SubscriptionRateMax)
	wrong(s.Burst < 0 || s.Burst > 60*SubscriptionRateMax, "--burst is 0 to %d attempts", 60*SubscriptionRateMax)
	wrong(s.Burst > 0 && s.Rate == 0, "--burst goes with --rate: without a rate there is no limit")
	wrong(s.Concurrency < 0 || s.Concurrency > ConcurrencyMax, "--concurrency is 0 (no limit) to %d attempts side by side", ConcurrencyMax)
	return append(problems, headerProblems(s, credential)...)
}

func headerProblems(s delivery.Subscription, credential Secret) []string {
	var problems []string
	if s.Target.Kind != delivery.HTTP && (len(s.Header) > 0 || s.CredentialHeader != "") {
		problems = append(problems, "--header and --credential-header go with --url: a queue and a bus take none")
	}
	if len(s.Header) > delivery.HeadersMax {
		problems = append(problems, fmt.Sprintf("--header is given at most %d times", delivery.HeadersMax))
	}
	low := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Header)) {
		if err := delivery.CheckHeader(name, s.Header[name]); err != nil {
			problems = append(problems, fmt.Sprintf("--header %s: %v", name, err))
		}
		if key := strings.ToLower(name); low[key] || key == strings.ToLower(s.CredentialHeader) {
			problems = append(problems, fmt.Sprintf("--header %s: there are two of this name", name))
		}
		low[strings.ToLower(name)] = true
	}
	switch {
	case s.CredentialHeader != "" && s.Credential == "":
		problems = append(problems, "--credential-header goes with --credential-file, which holds its text")
	case s.CredentialHeader == "" && !credential.Empty():
		problems = append(problems, "--credential-file goes with --credential-header, which carries it")
	case s.CredentialHeader != "":
		text := "x" // the one that is kept was checked when it came
		if !credential.Empty() {
			text = credential.Reveal()
		}
		if err := delivery.CheckCredentialHeader(s.CredentialHeader, text); err != nil {
			problems = append(problems, fmt.Sprintf("--credential-header %s: %v", s.CredentialHeader, err))
		}
	}
	return problems
}

func profileNames() []string {
	var names []string
	for _, p := range delivery.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// targetProblem returns why nothing may be delivered there, empty if it may. Our
// own addresses are refused: what is delivered there would come back.
func (o *Operator) targetProblem(t delivery.Target) string {
	if t.Kind != delivery.HTTP && len(t.RedirectHosts) > 0 {
		return "--redirect-host goes with --url"
	}
	switch t.Kind {
	case delivery.HTTP:
		return o.urlProblem(t)
	case delivery.Queue:
		return o.queueProblem(t.URL)
	case delivery.Bus:
		if !busARN.MatchString(t.Bus) {
			return "--to-bus is the ARN of an EventBridge bus: arn:aws:events:eu-west-1:123456789012:event-bus/partner"
		}
		return ""
	}
	return "say where it goes: --url, --to-queue or --to-bus"
}

func (o *Operator) urlProblem(t delivery.Target) string {
	if err := delivery.CheckURL(t.URL, o.Loopback); err != nil {
		return "--url: " + err.Error()
	}
	if len(t.RedirectHosts) > RedirectHostsMax {
		return fmt.Sprintf("--redirect-host is given at most %d times", RedirectHostsMax)
	}
	own := append([]string{o.FrontDoor}, o.OwnQueues...)
	for _, ours := range own {
		if sameHost(t.URL, ours) {
			return "--url: this is an address of the stack's own, and what is delivered there would come back"
		}
	}
	for _, host := range t.RedirectHosts {
		if err := delivery.CheckHost(host, o.Loopback); err != nil {
			return "--redirect-host " + fmt.Sprintf("%q", host) + ": " + err.Error()
		}
		if slices.ContainsFunc(own, func(ours string) bool { return sameHost("https://"+host, ours) }) {
			return "--redirect-host " + host + ": this is an address of the stack's own"
		}
	}
	return ""
}

// sameHost reports whether two addresses lead to one place. On one machine the
// port tells them apart.
func sameHost(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	if errX != nil || errY != nil || x.Host == "" {
		return false
	}
	if isLoopback(x.Hostname()) && isLoopback(y.Hostname()) {
		return x.Port() == y.Port()
	}
	return strings.EqualFold(x.Hostname(), y.Hostname())
}

func isLoopback(host string) bool {
	return host == "127.0.0.1" || host == "::1" || strings.EqualFold(host, "localhost")
}

var (
	busARN    = regexp.MustCompile(`^arn:aws[a-z-]*:events:[a-z0-9-]+:[0-9]{12}:event-bus/[A-Za-z0-9._/-]{1,256}$`)
	queueHost = regexp.MustCompile(`^sqs\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$`)
	queuePath = regexp.MustCompile(`^/[0-9]{12}/[A-Za-z0-9_-]{1,80}(\.fifo)?$`)
)

func (o *Operator) queueProblem(text string) string {
	u, err := url.Parse(text)
	local := err == nil && o.Loopback && isLoopback(u.Hostname())
	if err != nil || u.User != nil || u.RawQuery != "" || strings.Contains(text, "#") || !queuePath.MatchString(u.Path) ||
		!local && (u.Scheme != "https" || !queueHost.MatchString(u.Host)) {
		return "--to-queue is the URL of an SQS queue: https://sqs.eu-west-1.amazonaws.com/123456789012/partner"
	}
	for _, ours := range o.OwnQueues {
		if own, err := url.Parse(ours); err == nil && own.Path == u.Path {
			return "--to-queue: this is a queue of the stack's own, and what is delivered there would come back"
		}
	}
	return ""
}

func credentialName(prefix string, id delivery.SubscriptionID) string {
	return prefix + string(id) + "/credential"
}

// putPartnerCredential keeps the text of a subscription's credential header.
func (o *Operator) putPartnerCredential(ctx context.Context, s delivery.Subscription, credential Secret, why string) error {
	at := webhook.Endpoint{ID: webhook.EndpointID(s.ID), Secret: credentialName(o.SubscriptionPrefix, s.ID)}
	_, err := o.keepCurrent(ctx, at, "subscription credential", subjectOfSubscription(s.ID), credential, why)
	return err
}
