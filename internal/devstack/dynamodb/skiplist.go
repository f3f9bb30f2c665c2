package dynamodb

import "math/rand/v2"

// ordered is a sorted map from encoded keys to values: a skip list with links
// both ways. It is not safe for concurrent writes; the store's lock guards it.
type ordered[V any] struct {
	head  *node[V] // before the first
	count int
	rand  *rand.Rand
}

type node[V any] struct {
	key   string
	value V
	next  []*node[V] // one link a level; level 0 holds every node
	prev  *node[V]   // on level 0; the head for the first
}

// levelsMax is enough for 4^12 nodes at one promotion in four.
const levelsMax = 12

// newOrdered returns an empty map. The tower heights come from a generator of its
// own with a fixed seed: they shape speed, never answers.
func newOrdered[V any]() *ordered[V] {
	head := &node[V]{next: make([]*node[V], levelsMax)}
	return &ordered[V]{head: head, rand: rand.New(rand.NewPCG(1, 2))}
}

// before fills path with the last node of each level whose key is below key and
// returns the lowest.
func (o *ordered[V]) before(key string, path *[levelsMax]*node[V]) *node[V] {
	at := o.head
	for level := levelsMax - 1; level >= 0; level-- {
		for next := at.next[level]; next != nil && next.key < key; next = at.next[level] {
			at = next
		}
		path[level] = at
	}
	return at
}

// get returns the value at exactly key.
func (o *ordered[V]) get(key string) (V, bool) {
	if n := o.ceiling(key); n != nil && n.key == key {
		return n.value, true
	}
	var none V
	return none, false
}

// ceiling is the first node at or after key, nil if there is none.
func (o *ordered[V]) ceiling(key string) *node[V] {
	var path [levelsMax]*node[V]
	return o.before(key, &path).next[0]
}

// lower is the last node before key, nil if there is none; an empty key stands
// for the end.
func (o *ordered[V]) lower(key string) *node[V] {
	if key == "" {
		return o.last()
	}
	var path [levelsMax]*node[V]
	if n := o.before(key, &path); n != o.head {
		return n
	}
	return nil
}

func (o *ordered[V]) last() *node[V] {
	at := o.head
	for level := levelsMax - 1; level >= 0; level-- {
		for at.next[level] != nil {
			at = at.next[level]
		}
	}
	if at == o.head {
		return nil
	}
	return at
}

// after is the following node, nil at the end.
func (o *ordered[V]) after(n *node[V]) *node[V] { return n.next[0] }

// preceding is the node before, nil at the start.
func (o *ordered[V]) preceding(n *node[V]) *node[V] {
	if n.prev == o.head {
		return nil
	}
	return n.prev
}

// put inserts or replaces.
func (o *ordered[V]) put(key string, value V) {
	var path [levelsMax]*node[V]
	at := o.before(key, &path)
	if next := at.next[0]; next != nil && next.key == key {
		next.value = value
		return
	}
	n := &node[V]{key: key, value: value, next: make([]*node[V], o.height()), prev: at}
	for level := range n.next {
		n.next[level] = path[level].next[level]
		path[level].next[level] = n
	}
	if following := n.next[0]; following != nil {
		following.prev = n
	}
	o.count++
}

// delete removes the node at exactly key, if there is one.
func (o *ordered[V]) delete(key string) {
	var path [levelsMax]*node[V]
	n := o.before(key, &path).next[0]
	if n == nil || n.key != key {
		return
	}
	for level := range n.next {
		path[level].next[level] = n.next[level]
	}
	if following := n.next[0]; following != nil {
		following.prev = n.prev
	}
	o.count--
}

func (o *ordered[V]) height() int {
	height := 1
	for height < levelsMax && o.rand.Uint32()&3 == 0 {
		height++
	}
	return height
}
