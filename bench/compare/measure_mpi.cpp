// Open MPI or MPICH in bench/compare, whichever the compiler's wrapper is of.
#include <mpi.h>

#include "measure.hpp"

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  const compare::Request request = compare::read_request(count, arguments);
  compare::Library library;
#ifdef OPEN_MPI
  library.name = "openmpi";
  library.version =
      std::to_string(OMPI_MAJOR_VERSION) + "." + std::to_string(OMPI_MINOR_VERSION) + "." + std::to_string(OMPI_RELEASE_VERSION);
#else
  library.name = "mpich";
  library.version = MPICH_VERSION;
#endif
  MPI_Comm_rank(MPI_COMM_WORLD, &library.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &library.ranks);
  library.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  library.largest = [](double value) {
    double most = 0;
    MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
  };
  library.all_reduce = [](float* values, std::size_t elements) {
    MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(elements), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  library.reduce_scatter = [](const float* input, float* output, std::size_t part) {
    MPI_Reduce_scatter_block(input, output, static_cast<int>(part), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  library.all_gather = [](const float* input, float* output, std::size_t part) {
    MPI_Allgather(input, static_cast<int>(part), MPI_FLOAT, output, static_cast<int>(part), MPI_FLOAT, MPI_COMM_WORLD);
  };
  compare::Measurement(library, request).run();
  MPI_Finalize();
}
