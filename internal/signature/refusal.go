package signature

// Cause says why a request is refused. It is for logs, counts and operators;
// the answer to the sender does not tell causes apart.
type Cause string

// The causes.
const (
	// Missing: no signature that the scheme accepts was offered.
	Missing Cause = "missing"
	// Malformed: the signature headers are not what the scheme writes.
	Malformed Cause = "malformed"
	// Mismatch: no trusted key made any of the offered signatures over these bytes.
	Mismatch Cause = "mismatch"
	// Stale: the signed time is further back than the scheme tolerates.
	Stale Cause = "stale"
	// Future: the signed time is further ahead than the scheme tolerates.
	Future Cause = "future"
	// Retired: a key made the signature that is no longer trusted. The engine
	// never says so, since it is given trusted keys only; its caller may.
	Retired Cause = "retired"
)

// Causes lists every cause.
func Causes() []Cause { return []Cause{Missing, Malformed, Mismatch, Stale, Future, Retired} }

// Refusal is the error for a request that must not be accepted. Detail is a
// fixed sentence about the form; it repeats nothing of the request.
type Refusal struct {
	Cause  Cause
	Detail string
}

func (r *Refusal) Error() string {
	if r.Detail == "" {
		return "signature " + string(r.Cause)
	}
	return "signature " + string(r.Cause) + ": " + r.Detail
}

func missing(detail string) *Refusal   { return &Refusal{Cause: Missing, Detail: detail} }
func malformed(detail string) *Refusal { return &Refusal{Cause: Malformed, Detail: detail} }
