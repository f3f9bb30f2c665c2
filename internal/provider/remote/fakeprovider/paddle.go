package fakeprovider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// paddle is the part of the stand-in that is Paddle's: its answers have what was
// asked for in data, beside meta.
type paddle struct {
	events []event // in the order of their ids
}

func (s *Server) paddleRoutes(m *http.ServeMux) {
	// https://developer.paddle.com/api-reference
	m.HandleFunc("GET /paddle/events", s.paddleEvents)
	for _, collection := range []string{"transactions", "subscriptions"} {
		m.HandleFunc("GET /paddle/"+collection+"/{id}", func(w http.ResponseWriter, r *http.Request) {
			state, ok := s.read("paddle", collection, r.PathValue("id"))
			if !ok {
				refuse(w, "paddle", http.StatusNotFound, "Entity not found")
				return
			}
			answer(w, http.StatusOK, map[string]any{"data": state, "meta": map[string]any{"request_id": "made-up"}})
		})
	}
}

// PaddleEvent adds an event to Paddle's list: a whole event, with event_id. Ids
// grow with time, as Paddle's do.
func (s *Server) PaddleEvent(body []byte) {
	id := scalar(body, "event_id")
	if id == "" {
		panic("fakeprovider: an event needs an id")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paddle.events = append(s.paddle.events, event{id: id, body: bytes.Clone(body)})
	slices.SortFunc(s.paddle.events, func(a, b event) int { return strings.Compare(a.id, b.id) })
}

// paddleEvents lists events by their ids, up or down; after is the id behind which
// the page begins.
// https://developer.paddle.com/api-reference/events/list-events
func (s *Server) paddleEvents(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	asked := number(q, "per_page")
	if asked == 0 {
		asked = 50
	}
	size := s.pageSize(min(asked, 200), 200)
	s.mu.Lock()
	events := slices.Clone(s.paddle.events)
	s.mu.Unlock()
	total := len(events)
	switch q.Get("order_by") {
	case "", "id[DESC]":
		slices.Reverse(events)
	case "id[ASC]":
	default:
		refuse(w, "paddle", http.StatusBadRequest, "Invalid order_by")
		return
	}
	if after := q.Get("after"); after != "" {
		i := slices.IndexFunc(events, func(e event) bool { return e.id == after })
		if i < 0 {
			refuse(w, "paddle", http.StatusBadRequest, "Invalid after")
			return
		}
		events = events[i+1:]
	}
	page := events[:min(size, len(events))]
	data := []json.RawMessage{}
	for _, e := range page {
		data = append(data, e.body)
	}
	answer(w, http.StatusOK, map[string]any{"data": data, "meta": map[string]any{
		"request_id": "made-up",
		"pagination": map[string]any{
			"per_page": size, "next": paddleNext(r, page, size), "has_more": len(events) > len(page), "estimated_total": total,
		},
	}})
}

// paddleNext is the address of the next page, which is there on the last one too.
func paddleNext(r *http.Request, page []event, size int) string {
	next := url.URL{Scheme: "https", Host: r.Host, Path: r.URL.Path}
	q := r.URL.Query()
	q.Set("per_page", strconv.Itoa(size))
	if len(page) > 0 {
		q.Set("after", page[len(page)-1].id)
	}
	next.RawQuery = q.Encode()
	return next.String()
}
