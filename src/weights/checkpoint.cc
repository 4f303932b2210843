#include "weights/checkpoint.h"

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "base/json.h"
#include "weights/gguf_model.h"
#include "weights/printable.h"

namespace briar {
namespace {

namespace bj = boost::json;
namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

// A shard lies in the model's folder: its name has no path. An index from the network must not make
// us read files elsewhere.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

// Tensor name -> file name.
using WeightMap = std::map<std::string, std::string, std::less<>>;

Result<WeightMap> read_index(const std::string& path) {
  auto index = json::parse_file(path);
  if (!index) return index.error();
  const bj::object* object = index->if_object();
  if (object == nullptr) return make_error("{}: not a JSON object", path);
  const bj::value* found = object->if_contains("weight_map");
  if (found == nullptr || !found->is_object()) {
    return make_error("{}: weight_map is {}, not an object", path,
                      found == nullptr ? "missing" : printable(bj::serialize(*found)));
  }
  WeightMap map;
  for (const auto& [key, value] : found->get_object()) {
    const std::string name(key);
    if (!value.is_string()) {
      return make_error("{}: weight_map[\"{}\"] is {}, not a string", path, printable(name),
                        printable(bj::serialize(value)));
    }
    std::string file(value.get_string());
    if (!is_plain_file_name(file)) {
      return make_error("{}: weight_map[\"{}\"] is \"{}\", not the name of a file in this folder",
                        path, printable(name), printable(file));
    }
    map.emplace(name, std::move(file));
  }
  if (map.empty()) return make_error("{}: weight_map is empty", path);
  return map;
}

Result<std::vector<std::string>> list_safetensors(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ec;
  for (fs::directory_iterator it(directory, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->path().extension() == ".safetensors") names.push_back(it->path().filename().string());
  }
  if (ec) return make_error("{}: cannot list the folder: {}", directory, ec.message());
  if (names.empty()) {
    return make_error("{}: holds no weights: neither {} nor {} nor any *.safetensors", directory,
                      kSingleFile, kIndexFile);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string path_in(const std::string& directory, const std::string& file) {
  return (fs::path(directory) / file).string();
}

Status check_shards_exist(const std::string& directory, const std::set<std::string>& shards) {
  std::string missing;
  for (const std::string& shard : shards) {
    if (file_exists(path_in(directory, shard))) continue;
    missing += (missing.empty() ? "" : ", ") + printable(shard);
  }
  if (missing.empty()) return Ok{};
  return make_error("{}: files that {} lists are missing: {}", directory, kIndexFile, missing);
}

}  // namespace

Status Checkpoint::add_safetensors(const std::string& file_name) {
  auto file = MappedFile::open(path_in(path_, file_name));
  if (!file) return file.error();
  auto entries = parse_safetensors(file->bytes(), file->path());
  if (!entries) return entries.error();
  for (TensorEntry& entry : *entries) tensors_.push_back(std::move(entry));
  files_.push_back(*std::move(file));
  return Ok{};
}

Status Checkpoint::add_gguf() {
  auto file = MappedFile::open(path_);
  if (!file) return file.error();
  auto gguf = parse_gguf(file->bytes(), path_);
  if (!gguf) return gguf.error();
  if (Status status = rename_gguf_tensors(*gguf); !status) return status;
  tensors_ = std::move(gguf->tensors);
  files_.push_back(*std::move(file));
  return check_names();
}

Status Checkpoint::check_names() {
  by_name_.reserve(tensors_.size());
  for (const TensorEntry& entry : tensors_) {
    const auto [it, is_new] = by_name_.emplace(entry.name, &entry);
    if (is_new) continue;
    return make_error("{}: tensor {} stands in {} too", entry.file, printable(entry.name),
                      it->second->file);
  }
  return Ok{};
}

Status Checkpoint::add_folder() {
  WeightMap map;
  std::vector<std::string> names;
  const std::string index_path = path_in(path_, kIndexFile);
  if (file_exists(path_in(path_, kSingleFile))) {
    names = {kSingleFile};
  } else if (file_exists(index_path)) {
    auto index = read_index(index_path);
    if (!index) return index.error();
    map = *std::move(index);
    std::set<std::string> shards;
    for (const auto& [name, file] : map) shards.insert(file);
    if (Status status = check_shards_exist(path_, shards); !status) return status;
    names.assign(shards.begin(), shards.end());
  } else {
    auto listed = list_safetensors(path_);
    if (!listed) return listed.error();
    names = *std::move(listed);
  }
  for (const std::string& name : names) {
    if (Status status = add_safetensors(name); !status) return status;
  }
  if (Status status = check_names(); !status) return status;
  for (const auto& [name, file] : map) {
    const TensorEntry* entry = find(name);
    if (entry == nullptr || entry->file != path_in(path_, file)) {
      return make_error("{}: lists tensor {} in {}, which does not hold it", index_path,
                        printable(name), printable(file));
    }
  }
  return Ok{};
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string& model) {
  std::error_code ec;
  const bool is_file = is_model_file(model);
  if (!is_file && !fs::is_directory(model, ec)) {
    return make_error(
        "{}: {}", model,
        file_exists(model) ? "neither a folder nor a file" : "no such folder or file");
  }
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint());
  checkpoint->path_ = model;
  if (Status status = is_file ? checkpoint->add_gguf() : checkpoint->add_folder(); !status) {
    return status.error();
  }
  return checkpoint;
}

const TensorEntry* Checkpoint::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

int64_t Checkpoint::num_bytes() const {
  int64_t total = 0;
  for (const TensorEntry& entry : tensors_) total += static_cast<int64_t>(entry.bytes.size());
  return total;
}

}  // namespace briar
