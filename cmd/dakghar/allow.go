package main

import (
	"fmt"
	"strings"
	"time"

	"dakghar/internal/operator"
	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// allowed is a choice of addresses in the words of --allow-from; anywhere is none.
func allowed(from webhook.AllowFrom) []string {
	words := []string{}
	if from.Provider {
		words = append(words, operator.FromProvider)
	}
	for _, p := range from.Prefixes {
		words = append(words, prefixText(p.String()))
	}
	return words
}

// prefixText writes a single address without its length.
func prefixText(prefix string) string {
	if alone, single := strings.CutSuffix(prefix, "/32"); single && !strings.Contains(alone, ":") {
		return alone
	}
	return strings.TrimSuffix(prefix, "/128")
}

// addressesView is a provider's own list of addresses in JSON.
type addressesView struct {
	AsOf     string   `json:"as_of"` // a day
	Prefixes []string `json:"prefixes"`
	Except   word     `json:"except"`
	Sources  []string `json:"sources"`
}

func addressesJSON(list provider.Addresses) *addressesView {
	v := &addressesView{AsOf: list.AsOf.Format(time.DateOnly), Prefixes: []string{}, Except: word(list.Except), Sources: list.Sources}
	for _, p := range list.Prefixes {
		v.Prefixes = append(v.Prefixes, prefixText(p.String()))
	}
	return v
}

// addressRows tell a person what a provider's list is, and how old.
func addressRows(v *addressesView) [][]string {
	if v == nil {
		return nil
	}
	rows := [][]string{{"provider list", fmt.Sprintf("%s, as of %s: compare it with %s", count(len(v.Prefixes), "range"), v.AsOf, v.Sources[0])}}
	if v.Except != "" {
		rows = append(rows, []string{"without", string(v.Except)})
	}
	return rows
}
