package fakeprovider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"dakghar/internal/webhook"
)

// routes are the paths of the APIs, by their documentation.
func (s *Server) routes() *http.ServeMux {
	m := http.NewServeMux()
	// https://docs.stripe.com/api
	m.HandleFunc("GET /stripe/v1/events", s.stripeEvents)
	m.HandleFunc("GET /stripe/v1/{collection}/{id}", func(w http.ResponseWriter, r *http.Request) {
		s.object(w, "stripe", r.PathValue("collection"), r.PathValue("id"))
	})
	// https://razorpay.com/docs/api
	m.HandleFunc("GET /razorpay/v1/{collection}", s.razorpayList)
	m.HandleFunc("GET /razorpay/v1/{collection}/{id}", func(w http.ResponseWriter, r *http.Request) {
		s.object(w, "razorpay", r.PathValue("collection"), r.PathValue("id"))
	})
	// https://shopify.dev/docs/api/admin-rest
	m.HandleFunc("GET /shopify/admin/api/{version}/orders.json", s.shopifyOrders)
	m.HandleFunc("GET /shopify/admin/api/{version}/orders/{file}", s.shopifyOrder)
	// https://docs.github.com/en/rest
	m.HandleFunc("GET /github/repositories/{id}", func(w http.ResponseWriter, r *http.Request) {
		s.object(w, "github", "repositories", r.PathValue("id"))
	})
	m.HandleFunc("GET /github/repos/{owner}/{name}/hooks/{hook}/deliveries", s.githubDeliveries)
	m.HandleFunc("POST /github/repos/{owner}/{name}/hooks/{hook}/deliveries/{delivery}/attempts", s.githubRedeliver)
	m.HandleFunc("GET /github/orgs/{owner}/hooks/{hook}/deliveries", s.githubDeliveries)
	m.HandleFunc("POST /github/orgs/{owner}/hooks/{hook}/deliveries/{delivery}/attempts", s.githubRedeliver)
	s.paddleRoutes(m)
	return m
}

func (s *Server) object(w http.ResponseWriter, p webhook.Provider, collection, id string) {
	state, ok := s.read(p, collection, id)
	switch {
	case ok:
		answer(w, http.StatusOK, state)
	case p == "razorpay":
		refuse(w, p, http.StatusBadRequest, "The id provided does not exist")
	default:
		refuse(w, p, http.StatusNotFound, "Not Found")
	}
}

// stripeEvents lists events from the newest on.
// https://docs.stripe.com/api/events/list
func (s *Server) stripeEvents(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	size := s.pageSize(number(q, "limit"), 100)
	s.mu.Lock()
	events := slices.Clone(s.events)
	s.mu.Unlock()
	if from := number(q, "created[gte]"); from > 0 {
		events = slices.DeleteFunc(events, func(e event) bool { return e.created < int64(from) })
	}
	if after := q.Get("starting_after"); after != "" {
		i := slices.IndexFunc(events, func(e event) bool { return e.id == after })
		if i < 0 {
			refuse(w, "stripe", http.StatusBadRequest, "No such event")
			return
		}
		events = events[i+1:]
	}
	page := events[:min(size, len(events))]
	data := []json.RawMessage{}
	for _, e := range page {
		data = append(data, e.body)
	}
	answer(w, http.StatusOK, map[string]any{"object": "list", "url": "/v1/events", "has_more": len(events) > len(page), "data": data})
}

// razorpayList lists objects from the newest on, by the time at which they were made.
// https://razorpay.com/docs/api/payments/fetch-all-payments
func (s *Server) razorpayList(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	count := number(q, "count")
	if count == 0 {
		count = 10
	}
	if count > 100 {
		refuse(w, "razorpay", http.StatusBadRequest, "The count must be between 1 and 100")
		return
	}
	items := s.all("razorpay", r.PathValue("collection"))
	items = slices.DeleteFunc(items, func(o json.RawMessage) bool {
		created, _ := strconv.Atoi(scalar(o, "created_at"))
		return created < number(q, "from")
	})
	items = items[min(number(q, "skip"), len(items)):]
	items = items[:min(count, len(items))]
	answer(w, http.StatusOK, map[string]any{"entity": "collection", "count": len(items), "items": list(items)})
}

// shopifyOrder answers with one order in its wrapping.
func (s *Server) shopifyOrder(w http.ResponseWriter, r *http.Request) {
	id, ok := strings.CutSuffix(r.PathValue("file"), ".json")
	state, there := s.read("shopify", "orders", id)
	if !ok || !there {
		refuse(w, "shopify", http.StatusNotFound, "Not Found")
		return
	}
	answer(w, http.StatusOK, map[string]any{"order": state})
}

// shopifyOrders lists orders. page_info remembers the first request's parameters;
// only limit may stand beside it.
// https://shopify.dev/docs/api/usage/pagination-rest
func (s *Server) shopifyOrders(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	since, skip := q.Get("updated_at_min"), 0
	if info := q.Get("page_info"); info != "" {
		remembered, err := base64.URLEncoding.DecodeString(info)
		text, from, ok := strings.Cut(string(remembered), "|")
		if n, bad := strconv.Atoi(text); err == nil && bad == nil && ok {
			since, skip = from, n
		}
		q.Del("page_info")
		q.Del("limit")
		if err != nil || !ok || len(q) > 0 {
			refuse(w, "shopify", http.StatusBadRequest, "page_info: Invalid value.")
			return
		}
		q = r.URL.Query()
	}
	from, _ := time.Parse(time.RFC3339, since)
	orders := slices.DeleteFunc(s.all("shopify", "orders"), func(o json.RawMessage) bool {
		updated, err := time.Parse(time.RFC3339, scalar(o, "updated_at"))
		return err == nil && updated.Before(from)
	})
	size := s.pageSize(number(q, "limit"), 250)
	rest := orders[min(skip, len(orders)):]
	page := rest[:min(size, len(rest))]
	if len(rest) > len(page) {
		info := base64.URLEncoding.EncodeToString(fmt.Appendf(nil, "%d|%s", skip+len(page), since))
		link(w, r, url.Values{"page_info": {info}, "limit": {strconv.Itoa(size)}})
	}
	answer(w, http.StatusOK, map[string]any{"orders": list(page)})
}

// githubDeliveries lists deliveries from the newest on, without their content.
// https://docs.github.com/en/rest/repos/webhooks#list-deliveries-for-a-repository-webhook
func (s *Server) githubDeliveries(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	all := s.hook(r)
	if cursor := q.Get("cursor"); cursor != "" {
		i := slices.IndexFunc(all, func(d Delivery) bool { return "v1_"+strconv.FormatInt(d.ID, 10) == cursor })
		if i < 0 {
			refuse(w, "github", http.StatusUnprocessableEntity, "Validation Failed")
			return
		}
		all = all[i:]
	}
	size := s.pageSize(number(q, "per_page"), 100)
	page := all[:min(size, len(all))]
	if len(all) > len(page) {
		link(w, r, url.Values{"cursor": {"v1_" + strconv.FormatInt(all[len(page)].ID, 10)}, "per_page": {strconv.Itoa(size)}})
	}
	listed := []map[string]any{}
	for _, d := range page {
		item := map[string]any{
			"id": d.ID, "guid": d.GUID, "delivered_at": d.At.UTC().Format(time.RFC3339Nano), "redelivery": false, "duration": 0.03,
			"status": http.StatusText(d.Status), "status_code": d.Status, "event": d.Event, "action": nil, "installation_id": nil, "repository_id": nil,
		}
		if d.Action != "" {
			item["action"] = d.Action
		}
		listed = append(listed, item)
	}
	answer(w, http.StatusOK, listed)
}

// githubRedeliver takes a delivery for another try.
func (s *Server) githubRedeliver(w http.ResponseWriter, r *http.Request) {
	all := s.hook(r)
	i := slices.IndexFunc(all, func(d Delivery) bool { return strconv.FormatInt(d.ID, 10) == r.PathValue("delivery") })
	if i < 0 {
		refuse(w, "github", http.StatusNotFound, "Not Found")
		return
	}
	if s.Redelivered != nil {
		s.Redelivered(all[i])
	}
	answer(w, http.StatusAccepted, struct{}{})
}

func (s *Server) hook(r *http.Request) []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deliveries[path.Join(r.PathValue("owner"), r.PathValue("name"), r.PathValue("hook"))])
}

// link says where the next page is, at the address that the caller used.
func link(w http.ResponseWriter, r *http.Request, q url.Values) {
	next := url.URL{Scheme: "https", Host: r.Host, Path: r.URL.Path, RawQuery: q.Encode()}
	first := next
	first.RawQuery = ""
	w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="previous", <%s>; rel="next"`, first.String(), next.String()))
}

func number(q url.Values, name string) int {
	n, err := strconv.Atoi(q.Get(name))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// list is never null.
func list(items []json.RawMessage) []json.RawMessage { return append([]json.RawMessage{}, items...) }

// refuse answers with an error in its provider's form.
func refuse(w http.ResponseWriter, p webhook.Provider, status int, sentence string) {
	switch p {
	case "stripe":
		answer(w, status, map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": sentence}})
	case "razorpay":
		answer(w, status, map[string]any{"error": map[string]any{"code": "BAD_REQUEST_ERROR", "description": sentence}})
	case "shopify":
		answer(w, status, map[string]any{"errors": sentence})
	case "paddle":
		answer(w, status, map[string]any{
			"error": map[string]any{"type": "request_error", "code": "not_found", "detail": sentence}, "meta": map[string]any{"request_id": "made-up"},
		})
	default:
		answer(w, status, map[string]any{"message": sentence, "documentation_url": "https://docs.github.com/rest"})
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic("fakeprovider: what was set is not JSON")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
