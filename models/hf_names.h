// Every Hugging Face tensor name in one place: which file tensors make up each parameter of each family.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/linear.h"
#include "models/model_config.h"
#include "models/norm.h"

namespace drivetrain {

LinearSpec qkv_spec(const ModelConfig& config, std::int64_t layer);
LinearSpec attention_output_spec(const ModelConfig& config, std::int64_t layer);
LinearSpec mlp_up_spec(const ModelConfig& config, std::int64_t layer);
LinearSpec mlp_down_spec(const ModelConfig& config, std::int64_t layer);

enum class BlockNorm { kBeforeAttention, kBeforeMlp };
NormSpec block_norm_spec(const ModelConfig& config, std::int64_t layer, BlockNorm which, bool partial_grads);
NormSpec final_norm_spec(const ModelConfig& config, bool partial_grads);

std::string token_embedding_name(const ModelConfig& config);
std::string position_embedding_name(const ModelConfig& config);  // GPT-2
std::string head_name(const ModelConfig& config);

// Buffers that old exports store beside the weights (attention masks, rotary frequencies): never read.
bool is_ignorable_tensor(const std::string& name);
// Stored name -> our name, where an export leaves out the prefix of the base model.
std::map<std::string, std::string> stored_names(const ModelConfig& config, const std::vector<std::string>& names);

}  // namespace drivetrain
