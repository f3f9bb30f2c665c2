package github

import (
	"regexp"
	"time"

	"dakghar/internal/provider"
)

// api is GitHub's REST API. The credential is a token: for the list of deliveries
// and for a redelivery it needs to read and write the webhooks of the repository,
// or of the organisation.
//
//   - Address, token, version and the user agent that must be there:
//     https://docs.github.com/en/rest/using-the-rest-api/getting-started-with-the-rest-api.
//   - Deliveries of a repository's hook, newest first, the next page by the Link
//     header, and the redelivery, which is answered with 202:
//     https://docs.github.com/en/rest/repos/webhooks; the same below /orgs/ for an
//     organisation's: https://docs.github.com/en/rest/orgs/webhooks.
//   - 403 or 429 for too many calls, with retry-after or x-ratelimit-*:
//     https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api.
//
// A delivery is listed without its content. It is sent again by GitHub itself,
// signed, under the id that it had, and comes through the front door like any.
// A token that may not see an object is answered with 404, as if there were none.
func api() *provider.API {
	return &provider.API{
		Host: "api.github.com",
		Account: []provider.Param{
			{
				Name: "repo", About: "the repository that has the hook: owner/name", Slot: "owner", Before: "repos/",
				Alphabet: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}/\.?[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$`),
			},
			{
				Name: "org", About: "the organisation that has the hook, where no repository has it", Slot: "owner", Before: "orgs/",
				Alphabet: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`),
			},
			{Name: "hook", About: "the number of the hook", Alphabet: regexp.MustCompile(`^[0-9]{1,20}$`)},
		},
		Auth: provider.Auth{Style: provider.AuthBearer},
		Header: []provider.Pair{
			{Name: "Accept", Text: "application/vnd.github+json"},
			{Name: "X-GitHub-Api-Version", Text: "2022-11-28"},
		},
		Quota: provider.Quota{Left: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset"},
		Histories: []provider.History{{
			Path: "/{owner}/hooks/{hook}/deliveries", Query: []provider.Pair{{Name: "per_page", Text: "100"}},
			NewestFirst: true,
			Cursor:      provider.Cursor{Style: provider.CursorLink, Param: "cursor", Size: 100},
			At:          []string{"delivered_at"},
			Listed:      &provider.Listed{ID: "guid", Type: []string{"event", "action"}, Join: ".", Delivery: "id", Status: "status_code"},
		}},
		Reach:     3 * 24 * time.Hour,
		Redeliver: "/{owner}/hooks/{hook}/deliveries/{delivery}/attempts",
		Sources: []string{
			"https://docs.github.com/en/rest/using-the-rest-api/getting-started-with-the-rest-api",
			"https://docs.github.com/en/rest/repos/webhooks",
			"https://docs.github.com/en/rest/orgs/webhooks",
			"https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api",
			"https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks",
		},
	}
}

// currentRepository reads a repository by its number, since its name may be what
// changed: the documented way by name answers a renamed one with a redirect to
// this very address, which GitHub's client library also uses and calls
// undocumented.
//
// https://docs.github.com/en/rest/repos/repos#get-a-repository,
// https://pkg.go.dev/github.com/google/go-github/v66/github#RepositoriesService.GetByID
func currentRepository(deletes bool) *provider.Current {
	const repository = "repository."
	return &provider.Current{
		Path: "/repositories/{id}", ID: regexp.MustCompile(`^[0-9]{1,20}$`), At: "repository",
		Read: &provider.Reading{
			ID: []string{repository + "id"}, IDPrefix: "repository:",
			States: []provider.StateRule{
				{When: []provider.Check{provider.Is(repository+"archived", "true")}, State: "repository.archived"},
				{When: []provider.Check{provider.Is(repository+"private", "true")}, State: "repository.private"},
				{State: "repository.public"},
			},
		},
		Updated: []string{repository + "updated_at"},
		Gone:    "repository.deleted", Deletes: deletes,
	}
}
