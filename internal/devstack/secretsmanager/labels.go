package secretsmanager

import "net/http"

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
