package main

import (
	"context"
	"strings"
	"testing"

	"dakghar/internal/fault"
)

// Proves P1, M4: what an adapter knows is shown, with where it was read.
func TestProviderCommands(t *testing.T) {
	s := newShell(t)
	s.run("", "provider", "list")
	s.run("", "provider", "show", "github")
	s.run("", "provider", "show", "razorpay")
	s.run("", "provider", "show", "standard-webhooks", "--json")
	s.run("", "provider", "show", "x")
	s.run("", "provider", "addresses", "github")
	s.run("", "provider", "addresses", "github", "--json")
	s.run("", "provider", "addresses", "slack")
	s.run("", "provider", "addresses", "svix", "--check")
	for _, answer := range []string{
		`{"verifiable":true,"hooks":[` + githubToday + `],"web":["192.30.252.0/22"]}`,
		`{"hooks":["198.51.100.0/24","203.0.113.7",` + strings.Replace(githubToday, `"140.82.112.0/20",`, "", 1) + `]}`,
		`{"hooks":[` + strings.Replace(githubToday, `"140.82.112.0/20",`, "", 1) + `]}`,
		`{"hooks":[]}`,
		`<html>`,
	} {
		s.get = func(_ context.Context, url string) ([]byte, error) {
			if url != "https://api.github.com/meta" {
				t.Errorf("asked %s", url)
			}
			return []byte(answer), nil
		}
		s.run("", "provider", "addresses", "github", "--check")
		s.run("", "provider", "addresses", "github", "--check", "--json")
	}
	s.get = func(context.Context, string) ([]byte, error) { return nil, fault.New(fault.Theirs, "status_403", nil) }
	s.run("", "provider", "addresses", "github", "--check")
	s.wantGolden("provider")
}

// githubToday is what the adapter has, as its list writes it.
const githubToday = `"192.30.252.0/22","185.199.108.0/22","140.82.112.0/20","143.55.64.0/20","2a0a:a440::/29","2606:50c0::/32",` +
	`"9.234.98.160/28","9.234.98.176/28","9.234.106.48/28"`
