package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"strconv"
)

// captured is an answer that is looked into before anybody gets it.
type captured struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (c *captured) Header() http.Header         { return c.header }
func (c *captured) Write(b []byte) (int, error) { return c.body.Write(b) }
func (c *captured) WriteHeader(status int)      { c.status = status }

// carryOut lets a call through and keeps its answer, decoded where it is a success.
func (i *Injector) carryOut(r *http.Request) (*captured, map[string]json.RawMessage) {
	c := &captured{header: http.Header{}, status: http.StatusOK}
	i.next.ServeHTTP(c, r)
	var answer map[string]json.RawMessage
	if c.status == http.StatusOK {
		_ = json.Unmarshal(c.body.Bytes(), &answer) // nil stands for an answer that is none
	}
	return c, answer
}

// pass hands an answer on as it was.
func (c *captured) pass(w http.ResponseWriter) {
	for name, values := range c.header {
		w.Header()[name] = values
	}
	w.WriteHeader(c.status)
	_, _ = w.Write(c.body.Bytes()) // fails only when the client has gone
}

// passChanged hands an answer on with another body.
func (c *captured) passChanged(w http.ResponseWriter, answer map[string]json.RawMessage) {
	body, _ := json.Marshal(answer) // raw messages that were decoded cannot fail
	c.body.Reset()
	c.body.Write(body)
	c.header.Set("Content-Length", strconv.Itoa(len(body)))
	c.header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	c.pass(w)
}

// raw encodes what cannot fail to be.
func raw(v any) json.RawMessage {
	b, _ := json.Marshal(v)
	return b
}

// conflict answers as DynamoDB does when another transaction has the first item.
func conflict(w http.ResponseWriter, r *http.Request) {
	var in struct{ TransactItems []json.RawMessage }
	body, err := peek(r)
	if err != nil || json.Unmarshal(body, &in) != nil || len(in.TransactItems) == 0 {
		panic(http.ErrAbortHandler)
	}
	type reason struct{ Code, Message string }
	reasons := make([]reason, len(in.TransactItems))
	for i := range reasons {
		reasons[i].Code = "None"
	}
	reasons[0] = reason{"TransactionConflict", "Transaction is ongoing for the item"}
	c := &captured{header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, status: http.StatusBadRequest}
	c.passChanged(w, map[string]json.RawMessage{
		"__type":              raw("com.amazonaws.dynamodb.v20120810#TransactionCanceledException"),
		"Message":             raw(message),
		"CancellationReasons": raw(reasons),
	})
}

// part carries out every second entry of a batch.
func (i *Injector) part(w http.ResponseWriter, r *http.Request) {
	var in map[string]json.RawMessage
	var entries []struct{ ID string }
	var whole []json.RawMessage
	body, err := peek(r)
	if err != nil || json.Unmarshal(body, &in) != nil || json.Unmarshal(in["Entries"], &entries) != nil || json.Unmarshal(in["Entries"], &whole) != nil {
		panic(http.ErrAbortHandler)
	}
	type failure struct {
		ID          string `json:"Id"`
		Code        string
		SenderFault bool
	}
	var taken []json.RawMessage
	var failed []failure
	for n, e := range whole {
		if n%2 == 0 {
			taken = append(taken, e)
			continue
		}
		failed = append(failed, failure{ID: entries[n].ID, Code: "InternalError"})
	}
	in["Entries"] = raw(taken)
	replace(r, raw(in))
	c, answer := i.carryOut(r)
	if answer == nil || failed == nil {
		c.pass(w)
		return
	}
	answer["Failed"] = raw(failed)
	c.passChanged(w, answer)
}

// replace gives a call another body.
func replace(r *http.Request, body []byte) {
	r.Body, r.ContentLength = http.NoBody, int64(len(body))
	if len(body) > 0 {
		r.Body = readCloser{bytes.NewReader(body)}
	}
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// records loses or repeats the records of an answer that has some.
func (i *Injector) records(w http.ResponseWriter, r *http.Request, a *active) {
	var in struct{ ShardIterator string }
	body, err := peek(r)
	if err != nil || json.Unmarshal(body, &in) != nil {
		panic(http.ErrAbortHandler)
	}
	c, answer := i.carryOut(r)
	var found []json.RawMessage
	_ = json.Unmarshal(answer["Records"], &found) // none where there is no such answer
	switch {
	case len(found) == 0:
		i.forgive(a)
		c.pass(w)
		return
	case a.Mode == Lose:
		answer["Records"] = raw([]any{})
	default:
		answer["NextShardIterator"] = raw(in.ShardIterator)
	}
	c.passChanged(w, answer)
}

// forgive takes back that a call suffered.
func (i *Injector) forgive(a *active) {
	i.mu.Lock()
	defer i.mu.Unlock()
	a.Hit--
}

// late carries a call out when its time has come, even for a client that has gone.
func (i *Injector) late(r *http.Request, a *active) {
	if _, err := peek(r); err != nil {
		panic(http.ErrAbortHandler)
	}
	fired, stop := i.timer(a.Delay)
	defer stop()
	i.wait(a, 1)
	select {
	case <-fired:
	case <-a.cleared:
	}
	i.wait(a, -1)
	i.next.ServeHTTP(&discarded{header: http.Header{}}, r.WithContext(context.WithoutCancel(r.Context())))
	panic(http.ErrAbortHandler)
}
