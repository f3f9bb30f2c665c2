package provider

import "strings"

// tree is the set of paths that are read from a body, as it is walked.
type tree struct {
	root  node
	index map[string]int // path to its leaf
}

type node struct {
	leaf     int // index of what is read here, or -1
	raw      bool
	children map[string]*node
}

func newTree() *tree { return &tree{root: node{leaf: -1}, index: map[string]int{}} }

// add makes paths be read. Empty ones are ignored.
func (t *tree) add(paths ...string) {
	for _, p := range paths {
		if p == "" {
			continue
		}
		n := t.node(p)
		if n.leaf < 0 {
			n.leaf = len(t.index)
			t.index[p] = n.leaf
		}
	}
}

// addRaw makes the whole value at a path be kept as bytes.
func (t *tree) addRaw(path string) {
	t.add(path)
	t.node(path).raw = true
}

func (t *tree) node(path string) *node {
	n := &t.root
	for name := range strings.SplitSeq(path, ".") {
		child := n.children[name]
		if child == nil {
			child = &node{leaf: -1}
			if n.children == nil {
				n.children = map[string]*node{}
			}
			n.children[name] = child
		}
		n = child
	}
	return n
}

func (t *tree) addChecks(checks []Check) {
	for _, c := range checks {
		t.add(c.Path)
	}
}

func (t *tree) addKind(k Kind) {
	t.addChecks(k.Shape)
	r := k.Read
	if r == nil {
		return
	}
	for _, paths := range [][]string{r.ID, r.Version, r.Round, r.Amount, r.Currency, r.Parent} {
		t.add(paths...)
	}
	for _, rule := range r.States {
		t.addChecks(rule.When)
		t.add(rule.Amount...)
	}
	if r.Sum != nil {
		t.addRaw(r.Sum.Array)
	}
}

// element is the tree of the paths inside an element of a summed array.
func (s *Sum) element() *tree {
	t := newTree()
	t.add(s.Amount, s.Currency)
	t.addChecks(s.Where)
	return t
}
