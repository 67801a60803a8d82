// drivetrain train: what each rank runs, under mpirun, srun or alone.
#include "launcher/commands.h"
#include "launcher/options.h"
#include "launcher/training.h"
#include "runtime/log.h"

namespace drivetrain {

int cmd_train(Arguments arguments) {
  OptionList options("options");
  add_config_options(options);
  const Usage usage{
      "train CONFIG [options]",
      "One rank of a training run: alone, or as many as mpirun or srun start. `drivetrain launch` does that "
      "for you. Continues from the newest complete checkpoint of the run folder.",
      "  drivetrain train configs/tiny.yaml\n"
      "  mpirun -np 2 drivetrain train configs/quickstart.yaml --set steps=20\n"
      "  srun --mpi=pmix -n 4 drivetrain train configs/quickstart.yaml --set parallel.tp=2\n"};
  const auto values = parse_options(arguments, usage, options, {"config"});
  if (!values) return 0;
  const ConfigArguments source = config_arguments(*values);
  const Config config = load_config(source.file, source.overrides);

  const StopSignals signals;
  const auto world = open_world(comm_options(config));
  init_logging({.world_rank = world->rank(), .world_size = world->size(), .host = short_host_name()});
  RankPhase phase;
  return run_rank(*world, phase, [&] {
    phase.name = "build the model";
    RankObjects rank = build_rank(config, world->split(0, world->rank()), TransformerOptions::Use::kTraining);
    init_logging({world->rank(), world->size(), rank.mesh->dp_rank(), rank.mesh->tp_rank(), short_host_name()});
    train({config, resolved_yaml(source.file, source.overrides), signals}, rank, phase);
    return 0;
  });
}

}  // namespace drivetrain
