package dynamo

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// updating gathers the clauses of an update.
type updating struct {
	e                  *expression
	set, sum, dropping []string
}

func (u *updating) put(name string, v types.AttributeValue) {
	u.set = append(u.set, u.e.name(name)+" = "+u.e.value(v))
}

func (u *updating) putIf(there bool, name string, v types.AttributeValue) {
	if there {
		u.put(name, v)
	}
}

func (u *updating) putOrRemove(name string, absent bool, v types.AttributeValue) {
	if absent {
		u.remove(name)
		return
	}
	u.put(name, v)
}

func (u *updating) remove(name string) { u.dropping = append(u.dropping, u.e.name(name)) }

func (u *updating) add(name string, n int64) {
	u.sum = append(u.sum, u.e.name(name)+" "+u.e.value(num(n)))
}

// String renders the clauses that there are.
func (u *updating) String() string {
	var parts []string
	for _, clause := range []struct {
		word  string
		items []string
	}{{"SET ", u.set}, {"ADD ", u.sum}, {"REMOVE ", u.dropping}} {
		if len(clause.items) > 0 {
			parts = append(parts, clause.word+strings.Join(clause.items, ", "))
		}
	}
	return strings.Join(parts, " ")
}
