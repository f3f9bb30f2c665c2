package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/middleware"

	"dakghar/internal/devstack/stack"
)

// Use is what the roles of many worlds allow, and which of it was needed. Both are
// in the template's terms: "dynamodb:GetItem on InboxTable.Arn".
type Use struct {
	mu      sync.Mutex
	granted map[string]map[string]bool // by role, true when needed
}

// configOf is the configuration of a program, which is held to its role.
func (w *World) configOf(program string, hooks ...func(*middleware.Stack) error) aws.Config {
	cfg := w.config(hooks...)
	cfg.Credentials = credentials.NewStaticCredentialsProvider(functionID(program), "local", "")
	return cfg
}

// functionID is a program's function in the template, whose role it is held to.
// The operator is none.
func functionID(program string) string {
	return strings.ToUpper(program[:1]) + program[1:] + "Function"
}

// denied is told of a call that a role does not allow.
func (w *World) denied(format string, args ...any) {
	if w.options.Denied == nil {
		w.T.Errorf(format, args...)
		return
	}
	w.options.Denied(fmt.Sprintf(format, args...))
}

// note adds a world that has ended.
func (u *Use) note(w *World, made *stack.Stack) {
	u.mu.Lock()
	defer u.mu.Unlock()
	names := inTemplate(made)
	if u.granted == nil {
		u.granted = map[string]map[string]bool{}
	}
	for _, role := range made.Roles {
		lines := u.granted[role.Name]
		if lines == nil {
			lines = map[string]bool{}
			u.granted[role.Name] = lines
		}
		used := w.wire.guard.Used(role.Name)
		for _, g := range role.Policy.Grants() {
			line := names.Replace(g.Sid + ": " + g.String())
			lines[line] = lines[line] || used[g]
		}
	}
}

// Unused lists what each role may do and no program did, sorted.
func (u *Use) Unused() map[string][]string {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := map[string][]string{}
	for role, lines := range u.granted {
		for _, line := range slices.Sorted(maps.Keys(lines)) {
			if !lines[line] {
				out[role] = append(out[role], line)
			}
		}
	}
	return out
}

// inTemplate writes ARNs and names of a stack as the template refers to them.
func inTemplate(made *stack.Stack) *strings.Replacer {
	type name struct{ value, id string }
	names := []name{{stack.Account, "${AWS::AccountId}"}, {made.Region, "${AWS::Region}"}}
	for id, r := range made.Resources {
		for _, attribute := range []string{"StreamArn", "Arn"} {
			if value := r.Attributes[attribute]; value != "" {
				names = append(names, name{value, id + "." + attribute})
			}
		}
	}
	// The replacer takes the first that fits: a stream's ARN begins with its table's.
	slices.SortFunc(names, func(a, b name) int { return cmp.Or(len(b.value)-len(a.value), cmp.Compare(a.id, b.id)) })
	var pairs []string
	for _, n := range names {
		pairs = append(pairs, n.value, n.id)
	}
	return strings.NewReplacer(pairs...)
}
