package github

import (
	_ "embed"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

var (
	//go:embed samples/repository.json
	repositorySample []byte
	//go:embed samples/installation.json
	installationSample []byte
	//go:embed samples/installation_repositories.json
	installationRepositoriesSample []byte
	//go:embed samples/ping.json
	pingSample []byte
)

// foreign are members that only other events with a repository have. A body of
// one of those must not pass as a notice about the repository itself.
func foreign() []string {
	return []string{
		"alert", "after", "check_run", "check_suite", "client_payload", "comment", "commits", "deployment", "deployment_status",
		"discussion", "forkee", "hook", "issue", "key", "label", "member", "membership", "milestone", "package", "pages", "project",
		"project_card", "project_column", "pull_request", "ref", "registry_package", "release", "repositories_added",
		"repository_ruleset", "review", "rule", "sponsorship", "starred_at", "team", "thread", "workflow", "workflow_job", "workflow_run",
	}
}

func catalogue() map[webhook.EventType]provider.Kind {
	c := map[webhook.EventType]provider.Kind{}
	repositories(c)
	installations(c)
	c["ping"] = notice("account.ping", "ping", pingSample, "hook:", "hook_id",
		provider.Has("zen"), provider.Has("hook_id"), provider.Lacks("action"))
	return c
}

func repositories(c map[webhook.EventType]provider.Kind) {
	shape := []provider.Check{provider.Has("repository.full_name")}
	for _, member := range foreign() {
		shape = append(shape, provider.Lacks(member))
	}
	for _, action := range []string{
		"archived", "created", "deleted", "edited", "privatized", "publicized", "renamed", "transferred", "unarchived",
	} {
		k := notice("account.repository_changed", "repository."+action, repositorySample, "repository:", "repository.id", shape...)
		k.Current = currentRepository(action == "deleted")
		c[webhook.EventType("repository."+action)] = k
	}
}

func installations(c map[webhook.EventType]provider.Kind) {
	// Every event that an app receives names its installation by id; only events
	// about the installation itself have the whole of it.
	whole := []provider.Check{provider.Has("installation.app_id"), provider.Has("installation.account")}
	own := append(whole[:2:2], provider.Lacks("repositories_added"), provider.Lacks("repository"))
	for _, action := range []string{"created", "deleted", "suspend", "unsuspend", "new_permissions_accepted"} {
		c[webhook.EventType("installation."+action)] = notice("account.installation_changed", "installation."+action,
			installationSample, "installation:", "installation.id", own...)
	}
	scope := append(whole[:2:2], provider.Has("repositories_added"), provider.Has("repositories_removed"))
	for _, action := range []string{"added", "removed"} {
		c[webhook.EventType("installation_repositories."+action)] = notice("account.installation_scope_changed", "installation_repositories."+action,
			installationRepositoriesSample, "installation:", "installation.id", scope...)
	}
}

// notice is a kind that has no order: its state is the event's own name.
func notice(name webhook.Kind, state string, sample []byte, prefix, id string, shape ...provider.Check) provider.Kind {
	return provider.Kind{
		Name: name, Object: webhook.Account, Policy: webhook.Monotonic, State: state, Shape: shape,
		Read: &provider.Reading{ID: []string{id}, IDPrefix: prefix, Sample: sample},
	}
}
