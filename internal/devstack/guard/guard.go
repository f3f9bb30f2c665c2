package guard

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"dakghar/internal/devstack/iam"
)

// Config says whom a guard knows. Names are those of the local stack.
type Config struct {
	Account, Region string
	// Roles are the functions' roles, by the function's logical id.
	Roles map[string]iam.Role
	// Tables are the ARNs of the tables, by name, where they are not of this account
	// and region: DynamoDB Local has a region of its own.
	Tables map[string]string
	// PartitionKeys are the names of the partition keys, by table, and by table,
	// slash and index.
	PartitionKeys map[string]string
	// BucketKeys are the ARNs of the keys that buckets are sealed with by default.
	BucketKeys map[string]string
	// Logf gets a line for each denied call.
	Logf func(format string, args ...any)
}

// Guard judges calls. It is safe for concurrent use.
type Guard struct {
	config Config

	mu     sync.Mutex
	used   map[string]map[iam.Grant]bool // by role
	denied []string
}

// New makes a guard.
func New(cfg Config) *Guard {
	if cfg.Logf == nil {
		cfg.Logf = func(string, ...any) {}
	}
	return &Guard{config: cfg, used: map[string]map[iam.Grant]bool{}}
}

// Before puts the guard before the services.
func (g *Guard) Before(services http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, services) })
}

func (g *Guard) serve(w http.ResponseWriter, r *http.Request, services http.Handler) {
	function := accessKey(r.Header.Get("Authorization"))
	role, known := g.config.Roles[function]
	if !known {
		services.ServeHTTP(w, r)
		return
	}
	body, err := read(r)
	if err != nil {
		answer(w, r, "the request was cut off")
		return
	}
	call, err := g.config.read(r, body)
	if err != nil {
		g.deny(w, r, function, role, iam.Request{Action: call.action, Resource: "*"}, "because the local stack cannot read it: "+err.Error())
		return
	}
	for _, q := range call.requests {
		if d := g.decide(role, q); !d.Allowed {
			g.deny(w, r, function, role, q, d.Why)
			return
		}
	}
	if call.absent != nil {
		w = &absence{ResponseWriter: w, request: r, mayKnow: func() bool { return g.mayKnow(function, role, *call.absent) }}
	}
	services.ServeHTTP(w, r)
}

// read takes the body of a call that is told by its body, and puts it back.
func read(r *http.Request) ([]byte, error) {
	if r.Header.Get(targetHeader) == "" || r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// accessKey is the id that a request is signed with, in
// "AWS4-HMAC-SHA256 Credential=KEY/20260301/us-east-1/sqs/aws4_request, …".
func accessKey(authorization string) string {
	_, credential, _ := strings.Cut(authorization, "Credential=")
	key, _, _ := strings.Cut(credential, "/")
	return key
}

func (g *Guard) decide(role iam.Role, q iam.Request) iam.Decision {
	d := role.Decide(q)
	if !d.Allowed {
		return d
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.used[role.Name] == nil {
		g.used[role.Name] = map[iam.Grant]bool{}
	}
	for _, grant := range d.Used {
		g.used[role.Name][grant] = true
	}
	return d
}

// Used tells which of a role's grants allowed a call so far.
func (g *Guard) Used(role string) map[iam.Grant]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[iam.Grant]bool, len(g.used[role]))
	for grant := range g.used[role] {
		out[grant] = true
	}
	return out
}

func (g *Guard) deny(w http.ResponseWriter, r *http.Request, function string, role iam.Role, q iam.Request, why string) {
	g.note(function, role, reason(q, why))
	answer(w, r, fmt.Sprintf("User: arn:aws:sts::%s:assumed-role/%s/%s is not authorized to perform: %s on resource: %s %s",
		g.config.Account, role.Name, function, q.Action, q.Resource, why))
}

// note says a denial in the log and remembers it.
func (g *Guard) note(function string, role iam.Role, what string) {
	line := fmt.Sprintf("[%s] DENIED %s: %s", function, role.Name, what)
	g.config.Logf("%s", line)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.denied) < deniedMax {
		g.denied = append(g.denied, line)
	}
}

// deniedMax bounds what is remembered: the first denials are those that matter.
const deniedMax = 100

// Denied are the first denials so far, as the log has them.
func (g *Guard) Denied() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.denied)
}

// reason is a denial for people. Only the kind of a partition key is told, which
// is what stands before its first #: what follows may be a customer's.
func reason(q iam.Request, why string) string {
	said := q.Action + " on " + q.Resource
	for _, key := range q.Context[leadingKeys] {
		if kind, _, told := strings.Cut(key, "#"); told {
			said += ", key " + kind + "#…"
		}
	}
	return said + ", " + why
}

// mayKnow tells whether the role may know that an object is not there.
func (g *Guard) mayKnow(function string, role iam.Role, list iam.Request) bool {
	d := g.decide(role, list)
	if !d.Allowed {
		g.note(function, role, "the object is not there, and that may not be told: "+reason(list, d.Why))
	}
	return d.Allowed
}
