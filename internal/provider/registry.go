package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dakghar/internal/webhook"
)

// Registry holds the adapters by name. It is immutable and safe for concurrent use.
type Registry struct {
	byName map[webhook.Provider]*Adapter
	all    []*Adapter
}

// NewRegistry checks every declaration and returns the adapters, or everything
// that is wrong with all of them.
func NewRegistry(adapters ...*Adapter) (*Registry, error) {
	r := &Registry{byName: map[webhook.Provider]*Adapter{}}
	var problems []error
	for _, a := range adapters {
		if r.byName[a.Name] != nil {
			problems = append(problems, fmt.Errorf("provider %s: declared twice", a.Name))
		}
		if err := a.Validate(); err != nil {
			problems = append(problems, err)
		}
		r.byName[a.Name] = a
		r.all = append(r.all, a)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	slices.SortFunc(r.all, func(a, b *Adapter) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return r, nil
}

// Lookup returns an adapter by name.
func (r *Registry) Lookup(name webhook.Provider) (*Adapter, bool) {
	a, ok := r.byName[name]
	return a, ok
}

// All returns the adapters in the order of their names.
func (r *Registry) All() []*Adapter { return slices.Clone(r.all) }
