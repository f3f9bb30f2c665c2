package secretsmanager

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"dakghar/internal/devstack/awsjson"
)

type createSecretInput struct {
	Name               string
	ClientRequestToken string
	Description        string
	value
}

type versionOutput struct {
	ARN           string
	Name          string
	VersionID     string   `json:"VersionId,omitempty"`
	VersionStages []string `json:"VersionStages,omitempty"`
}

func (s *Server) createSecret(_ *http.Request, in createSecretInput) (versionOutput, error) {
	if len(in.Name) > nameMax || !secretName.MatchString(in.Name) {
		return versionOutput{}, invalidParameter("A secret's name must be 1 to %d letters, digits and the characters /_+=.@-", nameMax)
	}
	if len(in.Description) > descriptionMax {
		return versionOutput{}, invalidParameter("A description has at most %d bytes.", descriptionMax)
	}
	if err := in.check(false); err != nil {
		return versionOutput{}, err
	}
	if err := checkToken(in.ClientRequestToken, !in.isEmpty()); err != nil {
		return versionOutput{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x, err := s.find(in.Name); err == nil {
		return x.createAgain(in)
	}
	now := s.cfg.Now()
	x := &secret{name: in.Name, arn: s.arn(in.Name, s.cfg.NewID()), description: in.Description, created: now, changed: now}
	s.secrets[x.name] = x
	out := versionOutput{ARN: x.arn, Name: x.name}
	if in.isEmpty() {
		return out, nil
	}
	out.VersionID = in.ClientRequestToken
	return out, x.add(in.ClientRequestToken, in.value, nil, now)
}

// createAgain answers a creation of a secret that exists: the same token with
// the same value is a retry, everything else is refused.
func (x *secret) createAgain(in createSecretInput) (versionOutput, error) {
	if !x.deletion.IsZero() {
		return versionOutput{}, invalidRequest("You can't create this secret because a secret with this name is already scheduled for deletion.")
	}
	if v := x.version(in.ClientRequestToken); v != nil && v.value.equals(in.value) {
		return versionOutput{ARN: x.arn, Name: x.name, VersionID: v.id}, nil
	}
	return versionOutput{}, exists("The operation failed because the secret already exists.")
}

// checkToken refuses a token that cannot be a version's id.
func checkToken(token string, needed bool) error {
	if token == "" && !needed {
		return nil
	}
	if token == "" {
		return invalidRequest("You must provide a ClientRequestToken value. We recommend a UUID-type value.")
	}
	if len(token) < tokenMin || len(token) > tokenMax {
		return invalidParameter("A ClientRequestToken must have %d to %d characters.", tokenMin, tokenMax)
	}
	return nil
}

type putSecretValueInput struct {
	SecretID           string `json:"SecretId"`
	ClientRequestToken string
	VersionStages      []string
	value
}

func (s *Server) putSecretValue(_ *http.Request, in putSecretValueInput) (versionOutput, error) {
	if err := in.check(true); err != nil {
		return versionOutput{}, err
	}
	if err := checkToken(in.ClientRequestToken, true); err != nil {
		return versionOutput{}, err
	}
	labels, err := labelsOf(in.VersionStages)
	if err != nil {
		return versionOutput{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.use(in.SecretID)
	if err != nil {
		return versionOutput{}, err
	}
	v := x.version(in.ClientRequestToken)
	switch {
	case v == nil:
		if err := x.add(in.ClientRequestToken, in.value, labels, s.cfg.Now()); err != nil {
			return versionOutput{}, err
		}
		v = x.version(in.ClientRequestToken)
	case !v.value.equals(in.value):
		return versionOutput{}, exists("You can't use ClientRequestToken %s because that value is already in use for a version with another value.", v.id)
	}
	return versionOutput{ARN: x.arn, Name: x.name, VersionID: v.id, VersionStages: v.labels}, nil
}

// labelsOf returns the labels of a new version: AWSCURRENT unless others are named.
func labelsOf(stages []string) ([]string, error) {
	if stages == nil {
		return []string{current}, nil
	}
	if len(stages) < 1 || len(stages) > LabelsMax {
		return nil, invalidParameter("VersionStages must have 1 to %d labels.", LabelsMax)
	}
	for _, label := range stages {
		if err := checkLabel(label); err != nil {
			return nil, err
		}
	}
	return stages, nil
}

func checkLabel(label string) error {
	if len(label) < 1 || len(label) > labelMax {
		return invalidParameter("A staging label must have 1 to %d characters.", labelMax)
	}
	return nil
}

type getSecretValueInput struct {
	SecretID     string `json:"SecretId"`
	VersionID    string `json:"VersionId"`
	VersionStage string
}

type secretValueOutput struct {
	ARN           string
	Name          string
	VersionID     string `json:"VersionId"`
	VersionStages []string
	CreatedDate   awsjson.Time
	value
}

func (s *Server) getSecretValue(_ *http.Request, in getSecretValueInput) (secretValueOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.use(in.SecretID)
	if err != nil {
		return secretValueOutput{}, err
	}
	v, err := x.lookUp(in.VersionID, in.VersionStage)
	if err != nil {
		return secretValueOutput{}, err
	}
	// The service tells when something was last read only to the day.
	day := s.cfg.Now().UTC().Truncate(24 * time.Hour)
	x.accessed, v.accessed = day, day
	return secretValueOutput{
		ARN: x.arn, Name: x.name, VersionID: v.id, VersionStages: append([]string{}, v.labels...),
		CreatedDate: awsjson.Time(v.created), value: v.value,
	}, nil
}

// lookUp finds a version by id, by label, or by both when they agree.
func (x *secret) lookUp(id, label string) (*version, error) {
	if id == "" {
		if label == "" {
			label = current
		}
		if v := x.holder(label); v != nil {
			return v, nil
		}
		return nil, notFound("Secrets Manager can't find the specified secret value for staging label: %s", label)
	}
	v := x.version(id)
	if v == nil {
		return nil, notFound("Secrets Manager can't find the specified secret value for VersionId: %s", id)
	}
	if label != "" && !v.has(label) {
		return nil, invalidRequest("You provided a VersionStage that is not associated to the provided VersionId.")
	}
	return v, nil
}

type secretIDInput struct {
	SecretID string `json:"SecretId"`
}

type describeSecretOutput struct {
	ARN                string
	Name               string
	Description        string              `json:"Description,omitempty"`
	CreatedDate        awsjson.Time        `json:"CreatedDate"`
	LastChangedDate    awsjson.Time        `json:"LastChangedDate"`
	LastAccessedDate   *awsjson.Time       `json:"LastAccessedDate,omitempty"`
	DeletedDate        *awsjson.Time       `json:"DeletedDate,omitempty"`
	VersionIDsToStages map[string][]string `json:"VersionIdsToStages,omitempty"`
}

func (s *Server) describeSecret(_ *http.Request, in secretIDInput) (describeSecretOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.find(in.SecretID)
	if err != nil {
		return describeSecretOutput{}, err
	}
	return describeSecretOutput{
		ARN: x.arn, Name: x.name, Description: x.description,
		CreatedDate: awsjson.Time(x.created), LastChangedDate: awsjson.Time(x.changed),
		LastAccessedDate: optional(x.accessed), DeletedDate: optional(x.deletion),
		VersionIDsToStages: x.stages(),
	}, nil
}

func optional(t time.Time) *awsjson.Time {
	if t.IsZero() {
		return nil
	}
	stamp := awsjson.Time(t)
	return &stamp
}

type listSecretVersionIDsInput struct {
	SecretID          string `json:"SecretId"`
	MaxResults        *int
	NextToken         string
	IncludeDeprecated bool
}

type versionEntry struct {
	VersionID        string        `json:"VersionId"`
	VersionStages    []string      `json:"VersionStages,omitempty"`
	CreatedDate      awsjson.Time  `json:"CreatedDate"`
	LastAccessedDate *awsjson.Time `json:"LastAccessedDate,omitempty"`
}

type listSecretVersionIDsOutput struct {
	ARN       string
	Name      string
	Versions  []versionEntry
	NextToken string `json:"NextToken,omitempty"`
}

func (s *Server) listSecretVersionIDs(_ *http.Request, in listSecretVersionIDsInput) (listSecretVersionIDsOutput, error) {
	limit := VersionsMax
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	if limit < 1 || limit > VersionsMax {
		return listSecretVersionIDsOutput{}, invalidParameter("MaxResults must be 1 to %d.", VersionsMax)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.find(in.SecretID)
	if err != nil {
		return listSecretVersionIDsOutput{}, err
	}
	listed := slices.Clone(x.versions)
	if !in.IncludeDeprecated {
		listed = slices.DeleteFunc(listed, func(v *version) bool { return len(v.labels) == 0 })
	}
	from, err := start(in.NextToken, len(listed))
	if err != nil {
		return listSecretVersionIDsOutput{}, err
	}
	out := listSecretVersionIDsOutput{ARN: x.arn, Name: x.name, Versions: []versionEntry{}}
	to := min(from+limit, len(listed))
	for _, v := range listed[from:to] {
		out.Versions = append(out.Versions, versionEntry{
			VersionID: v.id, VersionStages: v.labels, CreatedDate: awsjson.Time(v.created), LastAccessedDate: optional(v.accessed),
		})
	}
	if to < len(listed) {
		out.NextToken = strconv.Itoa(to)
	}
	return out, nil
}

// start reads a page token: the number of versions already listed.
func start(token string, listed int) (int, error) {
	if token == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(token)
	if err != nil || n < 0 || n > listed {
		return 0, refuse("InvalidNextTokenException", "The NextToken is not one that this service gave out.")
	}
	return n, nil
}

type updateSecretVersionStageInput struct {
	SecretID            string `json:"SecretId"`
	VersionStage        string
	RemoveFromVersionID string `json:"RemoveFromVersionId"`
	MoveToVersionID     string `json:"MoveToVersionId"`
}

func (s *Server) updateSecretVersionStage(_ *http.Request, in updateSecretVersionStageInput) (versionOutput, error) {
	if err := checkLabel(in.VersionStage); err != nil {
		return versionOutput{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.use(in.SecretID)
	if err != nil {
		return versionOutput{}, err
	}
	if err := x.relabel(in); err != nil {
		return versionOutput{}, err
	}
	x.changed = s.cfg.Now()
	return versionOutput{ARN: x.arn, Name: x.name}, nil
}

// relabel attaches, moves or removes one label. Whoever takes a label from a
// version must name that version, so that two callers cannot cross.
func (x *secret) relabel(in updateSecretVersionStageInput) error {
	from, to, holder := x.version(in.RemoveFromVersionID), x.version(in.MoveToVersionID), x.holder(in.VersionStage)
	switch {
	case in.RemoveFromVersionID == "" && in.MoveToVersionID == "":
		return invalidParameter("You must provide RemoveFromVersionId, MoveToVersionId or both.")
	case in.RemoveFromVersionID != "" && from == nil:
		return invalidParameter("RemoveFromVersionId is not a version of this secret.")
	case in.MoveToVersionID != "" && to == nil:
		return invalidParameter("MoveToVersionId is not a version of this secret.")
	case from != nil && from != holder:
		return invalidParameter("The staging label %s isn't attached to the version of RemoveFromVersionId.", in.VersionStage)
	case to != nil && holder != nil && holder != to && from == nil:
		return invalidParameter("The parameter RemoveFromVersionId can't be empty. Staging label %s is currently attached to version %s, so you must explicitly reference that version in RemoveFromVersionId.", in.VersionStage, holder.id)
	case to == nil && in.VersionStage == current:
		return invalidParameter("You can only move staging label %s to a different secret version. It can't be completely removed.", current)
	case to == nil:
		from.detach(in.VersionStage)
		return nil
	case x.labelsAfter([]string{in.VersionStage}) > LabelsMax:
		return limitExceeded("A secret has at most %d staging labels over all its versions.", LabelsMax)
	}
	x.move(in.VersionStage, to)
	return nil
}

type deleteSecretInput struct {
	SecretID                   string `json:"SecretId"`
	RecoveryWindowInDays       *int
	ForceDeleteWithoutRecovery bool
}

type deleteSecretOutput struct {
	ARN          string
	Name         string
	DeletionDate awsjson.Time
}

func (s *Server) deleteSecret(_ *http.Request, in deleteSecretInput) (deleteSecretOutput, error) {
	days := recoveryMaxDays
	if in.RecoveryWindowInDays != nil {
		days = *in.RecoveryWindowInDays
	}
	if days < recoveryMinDays || days > recoveryMaxDays {
		return deleteSecretOutput{}, invalidParameter("RecoveryWindowInDays must be %d to %d.", recoveryMinDays, recoveryMaxDays)
	}
	if in.ForceDeleteWithoutRecovery && in.RecoveryWindowInDays != nil {
		return deleteSecretOutput{}, invalidParameter("You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	x, err := s.find(in.SecretID)
	if in.ForceDeleteWithoutRecovery {
		return s.forceDelete(x, in.SecretID, now), nil
	}
	if err != nil {
		return deleteSecretOutput{}, err
	}
	if !x.deletion.IsZero() {
		return deleteSecretOutput{}, invalidRequest("You tried to perform the operation on a secret that's currently marked deleted.")
	}
	x.deletion = now.Add(time.Duration(days) * 24 * time.Hour)
	return deleteSecretOutput{ARN: x.arn, Name: x.name, DeletionDate: awsjson.Time(x.deletion)}, nil
}

// forceDelete succeeds for a secret that does not exist, as the service documents.
func (s *Server) forceDelete(x *secret, id string, now time.Time) deleteSecretOutput {
	if x == nil {
		x = &secret{name: id, arn: s.arn(id, s.cfg.NewID())}
	}
	delete(s.secrets, x.name)
	return deleteSecretOutput{ARN: x.arn, Name: x.name, DeletionDate: awsjson.Time(now)}
}
