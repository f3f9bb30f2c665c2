package provider

import (
	"regexp"
	"slices"
	"strings"
)

// escapes are texts that no part of an address may be: each would lead out of
// its place, or be read in two ways.
func escapes() []string {
	return []string{
		"", ".", "..", "../x", "a/../b", "a/..", "a//b", "/", "a/", "/a", "a/b/c", "a?b", "a#b", "a%2e", "a%2Fb", "a\\b", "a b", "a\nb", "a\x00",
		"a@b", "a:80", "a;b", "a&b", "{a}", "a,b", "é", "1\n", "\n1",
	}
}

// hosts are names that no account's host may be.
func hosts() []string {
	return []string{
		"localhost", "127.0.0.1", "169.254.169.254", "10.0.0.1", "[::1]", "example.com", "evil.example", "metadata.google.internal",
		"shop.myshopify.com.evil.example", "evil.example/shop.myshopify.com", "shop.myshopify.com:443", "user@shop.myshopify.com", ".myshopify.com",
	}
}

// validateAPI holds the declaration of a sender's API to its promise: nothing
// leads out of the addresses that it names.
func (a *Adapter) validateAPI(p *problems) {
	for _, t := range a.Types() {
		a.validateCurrent(p, string(t), a.Catalogue[t])
	}
	a.validateCurrent(p, "pattern", a.PatternKind)
	api := a.API
	if api == nil {
		return
	}
	a.validateAccount(p)
	a.validateAuth(p)
	p.refuse(len(api.Sources) == 0, "no sources of its API's facts")
	p.refuse(api.Redeliver != "" && !slices.Contains(placeholders(api.Redeliver), "delivery"), "a redelivery without its delivery")
	for _, h := range api.Histories {
		a.validateHistory(p, h)
	}
}

func (a *Adapter) validateAccount(p *problems) {
	api := a.API
	host := placeholders(api.Host)
	p.refuse(len(host) > 1 || len(host) == 1 && api.Host != "{"+host[0]+"}", "host %q is neither a name nor one placeholder", api.Host)
	p.refuse(len(host) == 0 && !hostName.MatchString(api.Host), "host %q is not a name", api.Host)
	seen := map[string]bool{}
	for _, param := range api.Account {
		p.refuse(seen[param.Name] || param.Name == "" || param.Name == "id" || param.Name == "delivery", "account value %q", param.Name)
		seen[param.Name] = true
		p.refuse(param.About == "", "account value %s says nothing to people", param.Name)
		p.refuse(param.Slot == "" && param.Before != "", "account value %s has a beginning and no slot", param.Name)
		p.refuse(param.Slot != "" && (param.Default != "" || param.Header != ""), "account value %s fills a slot, and is there when it is not given", param.Name)
		p.refuse(param.Before != "" && !plainPath("/"+param.Before+"x"), "account value %s begins with %q", param.Name, param.Before)
		p.refuse(param.Slot != "" && slices.Contains(host, param.Slot), "account value %s fills the host", param.Name)
		_, taken := api.param(param.Slot)
		p.refuse(taken, "slot %q of account value %s is a value's own name", param.Slot, param.Name)
		p.refuse(param.Default != "" && !param.allows(param.Default), "account value %s refuses its default", param.Name)
		if !validateAlphabet(p, "account value "+param.Name, param.Alphabet) {
			continue
		}
		for _, name := range hosts() {
			p.refuse(slices.Contains(host, param.Name) && param.Alphabet.MatchString(name), "account value %s lets the host be %q", param.Name, name)
		}
	}
	a.validateTemplate(p, api.Host)
	a.validateTemplate(p, api.Root)
	a.validateTemplate(p, api.Redeliver, "delivery")
}

// hostName is a name of at least two labels, of which the last is no number.
var hostName = regexp.MustCompile(`^([a-z0-9-]+\.)+[a-z]+$`)

// validateAlphabet reports whether an alphabet is there and matches whole texts
// that stay in their place.
func validateAlphabet(p *problems, what string, alphabet *regexp.Regexp) bool {
	if alphabet == nil {
		p.refuse(true, "%s has no alphabet", what)
		return false
	}
	s := alphabet.String()
	p.refuse(!strings.HasPrefix(s, "^") || !strings.HasSuffix(s, "$") || strings.Contains(s, "(?"), "the alphabet of %s does not match whole texts", what)
	for _, text := range escapes() {
		p.refuse(alphabet.MatchString(text), "the alphabet of %s allows %q", what, text)
	}
	return true
}

func (a *Adapter) validateAuth(p *problems) {
	auth := a.API.Auth
	p.refuse(auth.Style < AuthBearer || auth.Style > AuthHeader, "how the credential is shown is not stated")
	p.refuse((auth.Style == AuthHeader) != (auth.Header != ""), "a header for the credential and its style go together")
}

// validateTemplate holds a template to placeholders that are declared.
func (a *Adapter) validateTemplate(p *problems, template string, own ...string) {
	for _, name := range placeholders(template) {
		param, ok := a.API.filling(name, nil)
		p.refuse(!ok && !slices.Contains(own, name), "%q names {%s}, which the account does not have", template, name)
		p.refuse(ok && param.Header != "", "%q names {%s}, which goes into a header", template, name)
	}
	p.refuse(strings.ContainsAny(placeholder.ReplaceAllString(template, ""), "{}?#% "), "%q is more than a path", template)
}

func (a *Adapter) validateHistory(p *problems, h History) {
	a.validateTemplate(p, h.Path)
	p.refuse(!strings.HasPrefix(h.Path, "/"), "list %q has no path", h.Path)
	p.refuse(h.Cursor.Style < CursorLast || h.Cursor.Style > CursorOffset || h.Cursor.Param == "", "list %s: how pages are asked for is not stated", h.Path)
	p.refuse(h.Cursor.Size < 1 || h.Cursor.Size > pageItemsMax, "list %s: pages of %d", h.Path, h.Cursor.Size)
	p.refuse((h.Cursor.Style == CursorLast) != (h.Cursor.More != ""), "list %s: whether there are more", h.Path)
	p.refuse(h.Cursor.Style != CursorLast && h.Cursor.ID != "", "list %s: an id that no page is asked for by", h.Path)
	p.refuse(len(h.At) == 0, "list %s: no time", h.Path)
	p.refuse(h.Since == "" && !h.NewestFirst, "list %s: nothing ends it", h.Path)
	p.refuse(h.Listed != nil && h.Made != nil, "list %s: deliveries and objects", h.Path)
	p.refuse(h.Listed != nil && (h.Listed.ID == "" || len(h.Listed.Type) == 0), "list %s: deliveries without id or type", h.Path)
	m := h.Made
	if m == nil {
		return
	}
	p.refuse(len(m.Key) == 0 || len(m.Types) == 0, "list %s: objects without key or type", h.Path)
	p.refuse((m.TypeAt == "") == (m.TypeHeader == ""), "list %s: the type of what is made", h.Path)
	p.refuse((m.TypeAt == "") != (m.At == ""), "list %s: where the object of what is made stands", h.Path)
	for _, rule := range m.Types {
		_, ok := a.Kind(rule.Type)
		p.refuse(!ok, "list %s: type %q is not in the catalogue", h.Path, rule.Type)
	}
}

func (a *Adapter) validateCurrent(p *problems, t string, k Kind) {
	c := k.Current
	if c == nil || k.Read == nil {
		return
	}
	if a.API == nil {
		p.refuse(true, "%s: fetched from no API", t)
		return
	}
	validateAlphabet(p, t+"'s object id", c.ID)
	a.validateTemplate(p, c.Path, "id")
	p.refuse(!strings.HasPrefix(c.Path, "/") || !slices.Contains(placeholders(c.Path), "id"), "%s: path %q does not name the object", t, c.Path)
	r := c.reading(k)
	p.refuse(len(r.ID) == 0, "%s: a fetched object without an id", t)
	p.refuse(r.IDPrefix != k.Read.IDPrefix, "%s: a fetched object under another prefix", t)
	p.refuse(len(r.States) == 0 && k.State == "", "%s: a fetched object says nothing of its state", t)
	p.refuse(k.Delta, "%s: a sum cannot be fetched", t)
}
