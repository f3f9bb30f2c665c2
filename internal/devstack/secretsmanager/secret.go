package secretsmanager

import (
	"bytes"
	"slices"
	"time"
)

// secret is one secret with its versions, oldest first. Its methods need the
// server's lock.
type secret struct {
	name        string
	arn         string
	description string
	created     time.Time
	changed     time.Time
	accessed    time.Time
	deletion    time.Time // zero unless it is being deleted
	versions    []*version
}

// version is one value of a secret. The value never changes, the labels do.
type version struct {
	id       string
	value    value
	labels   []string // sorted; replaced and never changed in place, answers share it
	created  time.Time
	accessed time.Time
}

// value is text or bytes, and never both.
type value struct {
	SecretString *string `json:"SecretString,omitempty"`
	SecretBinary []byte  `json:"SecretBinary,omitempty"`
}

func (v value) isEmpty() bool { return v.SecretString == nil && v.SecretBinary == nil }

func (v value) equals(other value) bool {
	if v.SecretString == nil || other.SecretString == nil {
		return v.SecretString == other.SecretString && bytes.Equal(v.SecretBinary, other.SecretBinary)
	}
	return *v.SecretString == *other.SecretString
}

// check refuses a value that is both, or too long, or empty where one is needed.
func (v value) check(needed bool) error {
	switch {
	case v.SecretString != nil && v.SecretBinary != nil:
		return invalidParameter("You can't specify both a binary secret value and a string secret value in the same secret.")
	case v.isEmpty() && needed:
		return invalidParameter("You must provide either SecretString or SecretBinary.")
	case v.SecretString != nil && (len(*v.SecretString) < 1 || len(*v.SecretString) > ValueBytesMax),
		v.SecretBinary != nil && (len(v.SecretBinary) < 1 || len(v.SecretBinary) > ValueBytesMax):
		return invalidParameter("A secret value must have 1 to %d bytes.", ValueBytesMax)
	}
	return nil
}

func (x *secret) isGone(now time.Time) bool {
	return !x.deletion.IsZero() && !now.Before(x.deletion)
}

func (x *secret) version(id string) *version {
	for _, v := range x.versions {
		if v.id == id {
			return v
		}
	}
	return nil
}

// holder is the version that has the label, or nil.
func (x *secret) holder(label string) *version {
	for _, v := range x.versions {
		if v.has(label) {
			return v
		}
	}
	return nil
}

func (v *version) has(label string) bool { return slices.Contains(v.labels, label) }

func (v *version) attach(label string) {
	if !v.has(label) {
		v.labels = slices.Sorted(slices.Values(append(slices.Clone(v.labels), label)))
	}
}

func (v *version) detach(label string) {
	v.labels = slices.DeleteFunc(slices.Clone(v.labels), func(l string) bool { return l == label })
}

// move takes a label to a version from wherever it is. AWSCURRENT leaving a
// version takes AWSPREVIOUS to that version.
func (x *secret) move(label string, to *version) {
	from := x.holder(label)
	if from == to {
		return
	}
	if from != nil {
		from.detach(label)
	}
	to.attach(label)
	if label == current && from != nil {
		x.move(previous, from)
	}
}

// labelsAfter counts the labels in use once those given are attached as well.
func (x *secret) labelsAfter(added []string) int {
	all := map[string]bool{}
	for _, v := range x.versions {
		for _, label := range v.labels {
			all[label] = true
		}
	}
	for _, label := range added {
		all[label] = true
		if label == current && x.holder(current) != nil {
			all[previous] = true
		}
	}
	return len(all)
}

// add makes a version with labels, or says why there cannot be one.
func (x *secret) add(id string, val value, labels []string, now time.Time) error {
	if len(x.versions) == 0 {
		labels = append(slices.Clone(labels), current)
	}
	if x.labelsAfter(labels) > LabelsMax {
		return limitExceeded("A secret has at most %d staging labels over all its versions.", LabelsMax)
	}
	if !x.makeRoom(now) {
		return limitExceeded("A secret has at most %d versions that are labelled or younger than %v.", VersionsMax, VersionsKept)
	}
	v := &version{id: id, value: val, created: now}
	x.versions = append(x.versions, v)
	for _, label := range labels {
		x.move(label, v)
	}
	x.changed = now
	return nil
}

// makeRoom drops the oldest version that is deprecated and old enough when there
// are too many, and reports whether there is room for one more.
func (x *secret) makeRoom(now time.Time) bool {
	if len(x.versions) < VersionsMax {
		return true
	}
	for i, v := range x.versions {
		if len(v.labels) == 0 && now.Sub(v.created) >= VersionsKept {
			x.versions = slices.Delete(x.versions, i, i+1)
			return true
		}
	}
	return false
}

// stages maps the versions that have labels to them.
func (x *secret) stages() map[string][]string {
	all := map[string][]string{}
	for _, v := range x.versions {
		if len(v.labels) > 0 {
			all[v.id] = v.labels
		}
	}
	return all
}
