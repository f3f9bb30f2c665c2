package fault

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"time"
)

// Path is where a stack serves [Injector.Control].
const Path = "/_dakghar/fault"

// wire is a fault as JSON, with what it has done in answers.
type wire struct {
	Service      string `json:"service,omitempty"`
	Operation    string `json:"operation,omitempty"`
	Table        string `json:"table,omitempty"`
	Mode         Mode   `json:"mode"`
	After        int    `json:"after,omitempty"`
	Count        int    `json:"count,omitempty"`
	Milliseconds int64  `json:"delay_ms,omitempty"`
	Code         string `json:"code,omitempty"`
	Status       int    `json:"status,omitempty"`
	Seen         int    `json:"seen"`
	Hit          int    `json:"hit"`
	Waiting      int    `json:"waiting"`
}

func (w wire) fault() Fault {
	return Fault{
		Service: w.Service, Operation: w.Operation, Table: w.Table, Mode: w.Mode, After: w.After, Count: w.Count,
		Delay: time.Duration(w.Milliseconds) * time.Millisecond, Code: w.Code, HTTPStatus: w.Status,
	}
}

func (s Report) wire() wire {
	return wire{
		Service: s.Service, Operation: s.Operation, Table: s.Table, Mode: s.Mode, After: s.After, Count: s.Count,
		Milliseconds: s.Delay.Milliseconds(), Code: s.Code, Status: s.HTTPStatus, Seen: s.Seen, Hit: s.Hit, Waiting: s.Waiting,
	}
}

// Control serves the faults as JSON: POST adds one, GET lists them, DELETE
// clears them, with ?service= those of one service. Every answer is the list
// as it is then.
//
// A POST must say that it is application/json: a web page in the same browser
// cannot without asking first, and is never permitted.
func (i *Injector) Control() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
		case http.MethodDelete:
			i.Clear(r.URL.Query().Get("service"))
		case http.MethodPost:
			if err := i.post(w, r); err != nil {
				answer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
				return
			}
		default:
			w.Header().Set("Allow", "GET, POST, DELETE")
			answer(w, http.StatusMethodNotAllowed, map[string]string{"error": "GET, POST or DELETE"})
			return
		}
		list := []wire{}
		for _, s := range i.List() {
			list = append(list, s.wire())
		}
		answer(w, http.StatusOK, list)
	})
}

const controlBytesMax = 4096

func (i *Injector) post(w http.ResponseWriter, r *http.Request) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return errors.New("the content type must be application/json")
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, controlBytesMax))
	d.DisallowUnknownFields()
	var in wire
	if err := d.Decode(&in); err != nil {
		return err
	}
	if in.Seen != 0 || in.Hit != 0 || in.Waiting != 0 {
		return errors.New("seen, hit and waiting are counted here and cannot be set")
	}
	return i.Add(in.fault())
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails only when the client has gone
}
