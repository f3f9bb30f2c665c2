package dynamodb

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// step is one step into a document: a map's name, or a list's index where name
// is empty and isIndex is set.
type step struct {
	name    string
	index   int
	isIndex bool
}

// path addresses an attribute or something inside one; the first step is always
// a name.
type path []step

func (p path) String() string {
	parts := make([]string, len(p))
	for i, s := range p {
		parts[i] = s.name
		if s.isIndex {
			parts[i] = "[" + strconv.Itoa(s.index) + "]"
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (p path) equal(q path) bool { return slices.Equal(p, q) }

// compare orders paths step by step, indexes by number.
func (p path) compare(q path) int {
	return slices.CompareFunc(p, q, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.index, b.index))
	})
}

// get follows the path; ok is false where it leads nowhere.
func (p path) get(it item) (v value, ok bool) {
	v, ok = it[p[0].name]
	for _, s := range p[1:] {
		if !ok {
			return nil, false
		}
		v, ok = s.into(v)
	}
	return v, ok
}

func (s step) into(v value) (value, bool) {
	switch v := v.(type) {
	case object:
		if !s.isIndex {
			inner, ok := v[s.name]
			return inner, ok
		}
	case list:
		if s.isIndex && s.index < len(v) {
			return v[s.index], true
		}
	}
	return nil, false
}

// checkDisjoint refuses two paths of which one contains the other, or which treat
// one container as a list and as a map.
func checkDisjoint(label string, paths []path) *apiError {
	for i, p := range paths {
		for _, q := range paths[i+1:] {
			shared := commonSteps(p, q)
			switch {
			case shared == min(len(p), len(q)):
				return invalid("Invalid %s: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %v, path two: %v", label, p, q)
			case p[shared].isIndex != q[shared].isIndex:
				return invalid("Invalid %s: Two document paths conflict with each other; must remove or rewrite one of these paths; path one: %v, path two: %v", label, p, q)
			}
		}
	}
	return nil
}

func commonSteps(p, q path) int {
	n := 0
	for n < len(p) && n < len(q) && p[n] == q[n] {
		n++
	}
	return n
}

// projection is a tree of the paths to keep. A leaf keeps the whole value.
type projection struct {
	names   map[string]*projection
	indexes map[int]*projection
}

// newProjection merges disjoint paths.
func newProjection(paths []path) *projection {
	root := &projection{}
	for _, p := range paths {
		at := root
		for _, s := range p {
			at = at.child(s)
		}
	}
	return root
}

func (p *projection) child(s step) *projection {
	if s.isIndex {
		if p.indexes == nil {
			p.indexes = map[int]*projection{}
		}
		if p.indexes[s.index] == nil {
			p.indexes[s.index] = &projection{}
		}
		return p.indexes[s.index]
	}
	if p.names == nil {
		p.names = map[string]*projection{}
	}
	if p.names[s.name] == nil {
		p.names[s.name] = &projection{}
	}
	return p.names[s.name]
}

// apply keeps what the paths name; a nil projection keeps everything.
func (p *projection) apply(it item) item {
	if p == nil {
		return it
	}
	out := make(item, len(p.names))
	p.applyMap(it, out)
	return out
}

func (p *projection) applyMap(in, out object) {
	for name, child := range p.names {
		if v, ok := in[name]; ok {
			if v, ok = child.applyValue(v); ok {
				out[name] = v
			}
		}
	}
}

func (p *projection) applyValue(v value) (value, bool) {
	if p.names == nil && p.indexes == nil {
		return v, true
	}
	switch v := v.(type) {
	case object:
		out := object{}
		p.applyMap(v, out)
		return out, len(out) > 0
	case list:
		out := p.applyList(v)
		return out, len(out) > 0
	}
	return nil, false
}

// applyList keeps the named elements in their order and closes the gaps.
func (p *projection) applyList(in list) list {
	var out list
	for i, element := range in {
		if child := p.indexes[i]; child != nil {
			if v, ok := child.applyValue(element); ok {
				out = append(out, v)
			}
		}
	}
	return out
}
