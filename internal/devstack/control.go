package devstack

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	"dakghar/internal/devstack/lambda"
	"dakghar/internal/devstack/stack"
)

// Description is the answer of GET /_dakghar/stack: where everything is. The
// command's --local reads it.
type Description struct {
	FrontDoor string `json:"frontDoor"` // where requests go
	AWS       string `json:"aws"`       // where the services answer
	DynamoDB  string `json:"dynamodb"`  // "embedded", or the address of another
	// ProviderAPI stands in for the providers' own APIs, empty for the real ones.
	ProviderAPI string `json:"providerAPI,omitempty"`
	*stack.Stack
}

// whenLive answers 503 until there is a stack to talk about.
func (s *Stack) whenLive(h func(*live, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		l := s.live.Load()
		if l == nil {
			writeJSON(w, http.StatusServiceUnavailable, map[string]string{"message": "the stack is starting"})
			return
		}
		h(l, w, r)
	}
}

func (s *Stack) describeStack(l *live, w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Description{
		FrontDoor: s.doorURL, AWS: s.awsURL, DynamoDB: orDefault(s.options.DynamoDBEndpoint, "embedded"),
		ProviderAPI: s.options.ProviderAPI, Stack: l.declared,
	})
}

// FunctionState is one function in the answer of GET /_dakghar/functions.
type FunctionState struct {
	InProcess bool             `json:"inProcess"`
	Processes []lambda.Process `json:"processes"`
}

func (s *Stack) listFunctions(l *live, w http.ResponseWriter, _ *http.Request) {
	out := map[string]FunctionState{}
	for id, f := range l.functions {
		_, inProcess := f.(*lambda.InProcess)
		out[id] = FunctionState{InProcess: inProcess, Processes: f.Processes()}
	}
	writeJSON(w, http.StatusOK, out)
}

// killSandboxes sends SIGKILL to all sandboxes of a function, or to one. The
// content type must be application/json: a web page in the same browser cannot
// send that without asking first, and is never permitted.
func (s *Stack) killSandboxes(l *live, w http.ResponseWriter, r *http.Request) {
	var in struct {
		Function string `json:"function"`
		PID      int    `json:"pid"`
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" || d.Decode(&in) != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"message": `want {"function":"LogicalId"} and perhaps "pid", as application/json`})
		return
	}
	f, ok := l.functions[in.Function]
	if !ok {
		writeJSON(w, http.StatusNotFound, map[string]string{"message": fmt.Sprintf("no function %q", in.Function)})
		return
	}
	var pids []int
	if in.PID != 0 {
		pids = append(pids, in.PID)
	}
	writeJSON(w, http.StatusOK, map[string]int{"killed": f.Kill(pids...)})
}

// usage tells the capacity units that each table has used, which only the
// embedded DynamoDB counts.
func (s *Stack) usage(w http.ResponseWriter, _ *http.Request) {
	if s.services.embedded == nil {
		writeJSON(w, http.StatusNotImplemented, map[string]string{"message": "only the embedded DynamoDB counts capacity"})
		return
	}
	writeJSON(w, http.StatusOK, s.services.embedded.Usage())
}

func (s *Stack) resetUsage(w http.ResponseWriter, _ *http.Request) {
	if s.services.embedded != nil {
		s.services.embedded.ResetUsage()
	}
	w.WriteHeader(http.StatusNoContent)
}
