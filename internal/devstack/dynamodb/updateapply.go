package dynamodb

import (
	"maps"
	"slices"
)

// Faults of an update that show only against the stored item.
const (
	messageOperand = "An operand in the update expression has an incorrect data type"
	messageAbsent  = "The provided expression refers to an attribute that does not exist in the item"
	messagePath    = "The document path provided in the update expression is invalid for update"
)

func (v givenValue) eval(item) (value, *apiError) { return v.value, nil }

func (v storedValue) eval(it item) (value, *apiError) {
	stored, ok := v.path.get(it)
	if !ok {
		return nil, invalid(messageAbsent)
	}
	return stored, nil
}

// eval judges the fallback even if it is not needed: a fault in it counts.
func (v ifNotExists) eval(it item) (value, *apiError) {
	fallback, err := v.fallback.eval(it)
	if stored, ok := v.path.get(it); ok && err == nil {
		return stored, nil
	}
	return fallback, err
}

func (v listAppend) eval(it item) (value, *apiError) {
	first, err := evalAs[list](v.first, it)
	if err != nil {
		return nil, err
	}
	second, err := evalAs[list](v.second, it)
	return slices.Concat(first, second), err
}

func (v arithmetic) eval(it item) (value, *apiError) {
	left, err := evalAs[number](v.left, it)
	if err != nil {
		return nil, err
	}
	right, err := evalAs[number](v.right, it)
	if err != nil {
		return nil, err
	}
	if v.minus {
		return checked(left.minus(right))
	}
	return checked(left.plus(right))
}

func checked(n number, err error) (value, *apiError) {
	if err != nil {
		return nil, invalid("%s", err)
	}
	return n, nil
}

func evalAs[T value](v updateValue, it item) (T, *apiError) {
	var none T
	got, err := v.eval(it)
	if err != nil {
		return none, err
	}
	typed, ok := got.(T)
	if !ok {
		return none, invalid(messageOperand)
	}
	return typed, nil
}

// write is one evaluated action: the path and its new value, nil to remove.
type write struct {
	path  path
	value value
}

// apply returns the item after the update; it is not changed itself. Every
// operand is judged on the item as it was, so SET a = b, b = a swaps. Writes
// happen in path order and removals afterwards from the back, so that list
// indexes mean what they meant before the update.
func (u *update) apply(it item) (item, *apiError) {
	writes, err := u.evaluate(it)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(writes, func(a, b write) int { return a.path.compare(b.path) })
	out := maps.Clone(it)
	for _, w := range writes {
		if w.value != nil {
			if err := put(out, w.path, w.value); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range slices.Backward(writes) {
		if w.value == nil {
			if err := remove(out, w.path); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (u *update) evaluate(it item) ([]write, *apiError) {
	var writes []write
	for _, a := range u.sets {
		v, err := a.value.eval(it)
		if err != nil {
			return nil, err
		}
		writes = append(writes, write{a.path, v})
	}
	for _, p := range u.removes {
		writes = append(writes, write{p, nil})
	}
	for _, a := range u.adds {
		v, err := added(it, a)
		if err != nil {
			return nil, err
		}
		writes = append(writes, write{a.path, v})
	}
	for _, a := range u.deletes {
		w, err := subtracted(it, a)
		if err != nil {
			return nil, err
		}
		writes = append(writes, w...)
	}
	return writes, nil
}

// added is the new value of ADD: a sum or a union; an absent attribute counts as
// zero or the empty set.
func added(it item, a setMember) (value, *apiError) {
	stored, ok := a.path.get(it)
	if !ok {
		return a.value, nil
	}
	switch more := a.value.(type) {
	case number:
		if n, ok := stored.(number); ok {
			return checked(n.plus(more))
		}
	case textSet:
		if s, ok := stored.(textSet); ok {
			return union(s, more), nil
		}
	case binarySet:
		if s, ok := stored.(binarySet); ok {
			return union(s, more), nil
		}
	case numberSet:
		if s, ok := stored.(numberSet); ok {
			out := slices.Concat(s, more)
			slices.SortFunc(out, number.compare)
			return slices.Compact(out), nil
		}
	}
	return nil, invalid(messageOperand)
}

func union[S ~[]string](a, b S) S {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// subtracted is the write of DELETE: the set without the members, its removal
// when nothing is left, no write when there was no set.
func subtracted(it item, a setMember) ([]write, *apiError) {
	stored, ok := a.path.get(it)
	if !ok {
		return nil, checkParent(it, a.path)
	}
	var left value
	var count int
	switch less := a.value.(type) {
	case textSet:
		if s, ok := stored.(textSet); ok {
			rest := without(s, less)
			left, count = rest, len(rest)
		}
	case binarySet:
		if s, ok := stored.(binarySet); ok {
			rest := without(s, less)
			left, count = rest, len(rest)
		}
	case numberSet:
		if s, ok := stored.(numberSet); ok {
			rest := without(s, less)
			left, count = rest, len(rest)
		}
	}
	switch {
	case left == nil:
		return nil, invalid(messageOperand)
	case count == 0:
		return []write{{a.path, nil}}, nil
	}
	return []write{{a.path, left}}, nil
}

func without[S ~[]E, E comparable](set, less S) S {
	return slices.DeleteFunc(slices.Clone(set), func(e E) bool { return slices.Contains(less, e) })
}

// checkParent refuses a path whose container is not there or is of another kind.
func checkParent(it item, p path) *apiError {
	if len(p) == 1 {
		return nil
	}
	parent, ok := p[:len(p)-1].get(it)
	if !ok || !p[len(p)-1].fits(parent) {
		return invalid(messagePath)
	}
	return nil
}

func (s step) fits(container value) bool {
	switch container.(type) {
	case object:
		return !s.isIndex
	case list:
		return s.isIndex
	}
	return false
}

// put sets one path in it, copying the containers on the way, which other
// readers may hold. Beyond the end of a list it appends.
func put(it item, p path, v value) *apiError {
	if err := checkParent(it, p); err != nil {
		return err
	}
	if len(p) == 1 {
		it[p[0].name] = v
		return nil
	}
	it[p[0].name] = edited(it[p[0].name], p[1:], func(container value, last step) value {
		switch c := container.(type) {
		case object:
			out := maps.Clone(c)
			out[last.name] = v
			return out
		case list:
			out := slices.Clone(c)
			if last.index < len(out) {
				out[last.index] = v
				return out
			}
			return append(out, v)
		}
		return container
	})
	return nil
}

// remove drops one path from it, copying likewise; what is not there is no fault
// if its container is.
func remove(it item, p path) *apiError {
	if err := checkParent(it, p); err != nil {
		return err
	}
	if len(p) == 1 {
		delete(it, p[0].name)
		return nil
	}
	it[p[0].name] = edited(it[p[0].name], p[1:], func(container value, last step) value {
		switch c := container.(type) {
		case object:
			out := maps.Clone(c)
			delete(out, last.name)
			return out
		case list:
			if last.index < len(c) {
				return slices.Delete(slices.Clone(c), last.index, last.index+1)
			}
		}
		return container
	})
	return nil
}

// edited copies the containers along steps and lets edit copy the innermost one
// with its last step changed. checkParent has made sure that the steps fit.
func edited(v value, steps path, edit func(container value, last step) value) value {
	if len(steps) == 1 {
		return edit(v, steps[0])
	}
	inner, _ := steps[0].into(v)
	inner = edited(inner, steps[1:], edit)
	switch v := v.(type) {
	case object:
		out := maps.Clone(v)
		out[steps[0].name] = inner
		return out
	case list:
		out := slices.Clone(v)
		out[steps[0].index] = inner
		return out
	}
	return v
}
