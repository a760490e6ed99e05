#include "server/one_shot.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/auth/accounts.h"
#include "server/auth/audit_chain.h"
#include "server/backup/state_backup.h"
#include "server/config/documents.h"
#include "server/daemon.h"

namespace kiln {
namespace {

int Report(const absl::Status& status, std::ostream& error) {
  if (status.ok()) return 0;
  error << "kilnd: " << status.message() << '\n';
  return 1;
}

int ReportAll(const std::vector<std::string>& problems, std::ostream& error) {
  for (const std::string& problem : problems) error << "kilnd: " << problem << '\n';
  return problems.empty() ? 0 : 1;
}

int CheckConfig(const config::Loaded& loaded, std::ostream& out, std::ostream& error) {
  std::vector<std::string> problems = loaded.problems;
  for (std::string& problem : StartProblems(loaded.config)) problems.push_back(std::move(problem));
  if (problems.empty()) out << "the configuration has no problems\n";
  return ReportAll(problems, error);
}

int VerifyAudit(const config::Config& config, std::ostream& out, std::ostream& error) {
  const auto report = auth::VerifyAuditFolder(config.state_folder);
  if (!report.ok()) return Report(report.status(), error);
  if (report->problem) {
    error << "kilnd: " << report->problem->file << ':' << report->problem->line << ": this line "
          << report->problem->what << '\n';
    return 1;
  }
  out << report->events << " events are as they were written";
  if (report->unprotected > 0)
    out << "; " << report->unprotected
        << " before them, of a version without seals, are not sealed";
  if (!report->end.tag.empty())
    out << "\nthe last one is event " << report->end.number << " with the seal " << report->end.tag;
  out << '\n';
  return 0;
}

backup::BackupOptions BackupOf(const config::Config& config, const std::string& file) {
  return {.file = file,
          .key_file = config.state_key_file,
          .state_folder = config.state_folder,
          .cache_folder = config.cache_folder,
          .with_sessions = config.with_sessions,
          .overwrite = config.overwrite};
}

int Backup(const config::Config& config, absl::Time now, std::ostream& out, std::ostream& error) {
  const bool exports = !config.export_state.empty();
  if (exports && !config.import_state.empty())
    return Report(
        absl::InvalidArgumentError("--export_state and --import_state exclude each other"), error);
  const auto files = exports ? backup::ExportState(BackupOf(config, config.export_state))
                             : backup::ImportState(BackupOf(config, config.import_state),
                                                   auth::AccountName(geteuid()).value_or(""), now);
  if (!files.ok()) return Report(files.status(), error);
  for (const backup::ArchivedFile& file : *files)
    out << (exports ? "saved " : "restored ") << file.name << ", " << file.bytes << " bytes\n";
  if (exports)
    out << "wrote " << config.export_state << "; its key is in " << config.state_key_file
        << ", without which it cannot be restored: keep both, in different places\n";
  return 0;
}

}  // namespace

std::optional<int> RunOneShot(const config::Loaded& loaded, absl::Time now, std::ostream& out,
                              std::ostream& error) {
  const config::Config& config = loaded.config;
  if (config.check_config) return CheckConfig(loaded, out, error);
  const bool backs_up = !config.export_state.empty() || !config.import_state.empty();
  if (!config.print_config && !config.verify_audit && !backs_up) return std::nullopt;
  // With a configuration that is not understood they would work on other folders.
  if (!loaded.problems.empty()) return ReportAll(loaded.problems, error);
  if (config.print_config) {
    out << config::ConfigText(config, loaded.origins);
    return 0;
  }
  return backs_up ? Backup(config, now, out, error) : VerifyAudit(config, out, error);
}

}  // namespace kiln
